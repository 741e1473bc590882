// server_simulation: seeded schedules of a parameter server, its workers, and what goes wrong
// (simulation/runner.h).
#include "simulation/runner.h"
#include "simulation/world.h"

namespace cohort::server::simulation {
namespace {

cohort::simulation::ScheduleResult play(Seed seed, std::FILE* trace) {
  const Outcome o = World(seed, trace).run();
  cohort::simulation::ScheduleResult result;
  if (o.breach) result.breach = to_text(*o.breach);
  result.text = o.text;
  result.hash = o.hash;
  result.counts = {o.events, o.applied, o.crashes,   o.server_crashes, o.restarts, o.gone_back,
                   o.pauses, o.breaks,  o.evictions, o.excused,        o.counted};
  return result;
}

}  // namespace
}  // namespace cohort::server::simulation

int main(int argc, char** argv) {
  return cohort::simulation::run_simulation(
      {"server_simulation",
       {"events", "pushes", "worker crashes", "server crashes", "restarts", "back to a checkpoint",
        "pauses", "breaks", "evictions", "lost with both holders", "of these counted"},
       cohort::server::simulation::play},
      {argv + 1, argv + argc});
}
