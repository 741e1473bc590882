// Monotonic time. Decisions use only this; wall-clock time appears in logs alone.
#pragma once

#include <chrono>

namespace cohort {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;  // no wait in this project is without one

inline Deadline deadline_in(std::chrono::nanoseconds from_now) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(from_now);
}

inline double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// Adds the time from construction to destruction to a total.
class StopWatch {
 public:
  explicit StopWatch(double& total_seconds) : total_(total_seconds), start_(Clock::now()) {}
  ~StopWatch() { total_ += seconds_between(start_, Clock::now()); }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  double& total_;
  Clock::time_point start_;
};

}  // namespace cohort
