// Which of two ways of doing the same is quicker here, found out by trying.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cohort {

// Remembers for vectors of about the same length how long each way took. Which one is quicker
// depends on the machine (whether its cores share a cache) and on what else it does, so the slower
// one is tried again now and then. Used from one thread.
class QuickerWay {
 public:
  // The way to take next, 0 or 1.
  int choose(std::size_t bytes) {
    Record& record = record_for(bytes);
    const std::uint32_t use = record.uses++;
    if (use < 4) return static_cast<int>(use % 2);
    const int quicker = record.cost[1] < record.cost[0] ? 1 : 0;
    return use % kRetry == kRetry - 1 ? 1 - quicker : quicker;
  }

  void took(std::size_t bytes, int way, double seconds) {
    double& cost = record_for(bytes).cost[static_cast<std::size_t>(way)];
    const double now = seconds / static_cast<double>(bytes);
    cost = cost == 0 ? now : 0.7 * cost + 0.3 * now;
  }

 private:
  static constexpr std::uint32_t kRetry = 50;
  struct Record {
    std::array<double, 2> cost = {};  // seconds a byte, 0 when unknown; newer tries weigh more
    std::uint32_t uses = 0;
  };
  Record& record_for(std::size_t bytes) {
    return records_[static_cast<std::size_t>(std::bit_width(bytes))];
  }
  std::array<Record, 65> records_ = {};  // by the length's number of bits
};

}  // namespace cohort
