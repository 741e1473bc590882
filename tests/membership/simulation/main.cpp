// elastic_simulation: seeded schedules of an elastic group and what goes wrong
// (simulation/runner.h).
#include "simulation/runner.h"
#include "simulation/world.h"

int main(int argc, char** argv) {
  return cohort::simulation::run_simulation(
      {"elastic_simulation",
       {"events", "answers", "crashes", "returns", "cut off", "faults"},
       [](cohort::Seed seed, std::FILE* trace) {
         return cohort::membership::simulation::GroupWorld(seed, trace).run();
       }},
      {argv + 1, argv + argc});
}
