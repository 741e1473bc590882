// Sleeping on a word of memory until another thread or process changes it (Linux).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace cohort::collectives {

struct SpinPolicy;

// Sleeps while `word` is `expected`, until it is woken, at most for `at_most` and never longer than
// a tenth of a second: callers look again. `shared`: the word lies in memory of several processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, bool shared,
                std::chrono::nanoseconds at_most);
void futex_wake_all(std::atomic<std::uint32_t>& word, bool shared);

// The looks and yields before a sleep. next() takes the time of one, and is false when it is time
// to sleep: when patience is at its end, or when somebody computes on this core, since a sleeper is
// woken sooner than a yielder's turn comes.
class Turns {
 public:
  explicit Turns(const SpinPolicy& patience) : patience_(patience) {}
  bool next();

 private:
  const SpinPolicy& patience_;
  int turn_ = 0;
  Clock::time_point last_yield_ = {};
};

}  // namespace cohort::collectives
