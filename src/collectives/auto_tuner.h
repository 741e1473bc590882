// Which of several ways of doing the same is quickest here, found out by trying.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cohort::collectives {

// Remembers for vectors of about the same length how long each way took. Which one is quickest
// depends on the machine (whether its cores share a cache) and on what else it does, so the slower
// ones are tried again now and then. Used from one thread.
class AutoTuner {
 public:
  static constexpr int kMaxWays = 3;

  // The way to take next, below `ways`, which is the same for all vectors of about that length.
  int choose(std::size_t bytes, int ways) {
    Record& record = record_for(bytes);
    const std::uint32_t use = record.uses++;
    const auto count = static_cast<std::uint32_t>(ways);
    if (use < 2 * count) return static_cast<int>(use % count);
    if (use % kRetry == kRetry - 1) return static_cast<int>(use / kRetry % count);
    const auto* first = record.cost.begin();
    return static_cast<int>(std::min_element(first, first + ways) - first);
  }

  void took(std::size_t bytes, int way, double seconds) {
    double& cost = record_for(bytes).cost[static_cast<std::size_t>(way)];
    const double now = seconds / static_cast<double>(bytes);
    cost = cost == 0 ? now : 0.7 * cost + 0.3 * now;
  }

 private:
  static constexpr std::uint32_t kRetry = 40;
  struct Record {
    std::array<double, kMaxWays> cost = {};  // seconds a byte; newer tries weigh more
    std::uint32_t uses = 0;
  };
  Record& record_for(std::size_t bytes) {
    return records_[static_cast<std::size_t>(std::bit_width(bytes))];
  }
  std::array<Record, 65> records_ = {};  // by the length's number of bits
};

}  // namespace cohort::collectives
