// swamp_simulation: seeded schedules of a best-model server, its workers, and what goes wrong.
//
//   --seeds FIRST COUNT   so many schedules; exit status 1 at the first that breaks a promise
//   --seed N [--trace]    one of them; with what happened, an event a line
//   --twice N             one, two times: the same in every detail?
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulation/world.h"

namespace cohort::swamp::simulation {
namespace {

bool play(Seed seed, bool trace, Outcome& outcome) {
  try {
    outcome = World(seed, trace).run();
    return true;
  } catch (const std::exception& error) {
    std::printf("seed %llu: %s\nreplay: swamp_simulation --seed %llu --trace\n",
                static_cast<unsigned long long>(seed), error.what(),
                static_cast<unsigned long long>(seed));
    return false;
  }
}

int play_many(Seed first, Seed count) {
  Outcome sum;
  for (Seed seed = first; seed < first + count; ++seed) {
    Outcome one;
    if (!play(seed, false, one)) return 1;
    sum.events += one.events;
    sum.offers += one.offers;
    sum.accepted += one.accepted;
    sum.worker_crashes += one.worker_crashes;
    sum.server_crashes += one.server_crashes;
    sum.breaks += one.breaks;
    sum.evictions += one.evictions;
    sum.fenced += one.fenced;
    sum.duplicates += one.duplicates;
  }
  std::printf(
      "%llu schedules: %llu frames, %llu offers, %llu accepted, %llu crashes of workers, %llu of "
      "servers, %llu breaks, %llu evictions, %llu fenced, %llu duplicates\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(sum.events),
      static_cast<unsigned long long>(sum.offers), static_cast<unsigned long long>(sum.accepted),
      static_cast<unsigned long long>(sum.worker_crashes),
      static_cast<unsigned long long>(sum.server_crashes),
      static_cast<unsigned long long>(sum.breaks), static_cast<unsigned long long>(sum.evictions),
      static_cast<unsigned long long>(sum.fenced), static_cast<unsigned long long>(sum.duplicates));
  return 0;
}

int run(int count, char** arguments) {
  const auto number = [&](int at) {
    return at < count ? std::strtoull(arguments[at], nullptr, 10) : 0;
  };
  const auto is = [&](const char* name) {
    return count > 1 && std::strcmp(arguments[1], name) == 0;
  };
  if (is("--seeds")) return play_many(number(2), number(3));
  Outcome outcome;
  if (is("--seed")) return play(number(2), count > 3, outcome) ? 0 : 1;
  if (is("--twice")) {
    Outcome again;
    if (!play(number(2), false, outcome) || !play(number(2), false, again)) return 1;
    if (outcome.digest == again.digest) return 0;
    std::puts("the second time was another one");
    return 1;
  }
  std::puts("usage: swamp_simulation --seeds FIRST COUNT | --seed N [--trace] | --twice N");
  return 2;
}

}  // namespace
}  // namespace cohort::swamp::simulation

int main(int count, char** arguments) { return cohort::swamp::simulation::run(count, arguments); }
