// Time as the simulations count it, and what is to happen when.
#pragma once

#include <chrono>
#include <cstdint>
#include <queue>
#include <vector>

#include "core/clock.h"

namespace cohort::simulation {

using Time = std::int64_t;  // nanoseconds since the schedule began

inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000 * kMillisecond;

// The machines under test get moments of the monotonic clock, far from its zero.
inline Deadline moment(Time time) {
  return Deadline{} + std::chrono::hours(1) + std::chrono::nanoseconds(time);
}

template <class Kind>
class EventQueue {
 public:
  struct Event {
    Time time = 0;
    std::uint64_t order = 0;  // events of one moment happen in the order they were asked for
    Kind kind = {};
    std::uint32_t subject = 0;
    std::uint64_t extra = 0;
  };

  void add(Time time, Kind kind, std::uint32_t subject = 0, std::uint64_t extra = 0) {
    heap_.push({time, ++order_, kind, subject, extra});
  }
  bool empty() const { return heap_.empty(); }
  Event take() {
    const Event next = heap_.top();
    heap_.pop();
    return next;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace cohort::simulation
