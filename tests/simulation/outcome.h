// How a schedule ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort::simulation {

struct ScheduleResult {
  std::optional<std::string> breach = {};  // the kind of promise that was broken
  std::string text = {};                   // how
  std::uint64_t hash = 0;                  // equal only for equal schedules
  std::vector<std::uint64_t> counts = {};  // as the simulation names them
};

}  // namespace cohort::simulation
