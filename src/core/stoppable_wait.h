// Waiting for another thread or process in such a way that the user can end it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/clock.h"

namespace cohort {

enum class WaitEnd { kCame, kLate, kStopped };

// Set when the user has asked to stop, also by a signal handler; null where nobody can.
using StopFlag = const std::atomic<bool>*;

// Waits until `come` holds or `deadline` passes; a stop ends it after `grace`, within which what
// nearly came may come. Looks at the flag five times a second: who sets it wakes nobody.
template <class Come>
WaitEnd wait_or_stop(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                     Deadline deadline, StopFlag stop, std::chrono::milliseconds grace,
                     const Come& come) {
  constexpr std::chrono::milliseconds kLookEvery{200};
  bool stopping = false;
  Deadline end = deadline;
  while (!changed.wait_until(lock, std::min(end, Clock::now() + kLookEvery), come)) {
    if (Clock::now() >= end) return stopping && end < deadline ? WaitEnd::kStopped : WaitEnd::kLate;
    if (stopping || stop == nullptr || !*stop) continue;
    stopping = true;
    end = std::min(deadline, Clock::now() + grace);
  }
  return WaitEnd::kCame;
}

}  // namespace cohort
