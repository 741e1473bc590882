// Runs the schedules of a simulation, with or without planted bugs.
//
//   --seeds FIRST COUNT   so many schedules; exit status 1 at the first that breaks a promise
//   --seed N [--trace]    one of them; with what happened, an event a line
//   --twice N             one, two times: the same in every detail?
//   --bug NAME            with one known mistake
//   --survey FIRST COUNT  likewise as --seeds, but goes on: how many break which promise
//   --bugs COUNT          each of the known mistakes must show within COUNT schedules
//   --threads N           so many at a time (2)
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "core/types.h"
#include "simulation/outcome.h"

namespace cohort::simulation {

struct Simulation {
  std::string name;
  std::vector<std::string> counted;  // what ScheduleResult::counts are
  std::function<ScheduleResult(Seed, std::FILE* trace)>
      play;  // from several threads; null: no trace
};

// The exit status.
int run_simulation(const Simulation& simulation, const std::vector<std::string>& words);

}  // namespace cohort::simulation
