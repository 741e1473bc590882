#include "collectives/meeting.h"

#include <sched.h>

#include "collectives/futex.h"

namespace cohort {

Patience Patience::for_group(int size, bool shared, int cores) {
  cpu_set_t allowed;
  if (cores == 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cores = CPU_COUNT(&allowed);
  }
  Patience patience;
  // About as long as it takes to put a thread to sleep and to wake it.
  patience.looks = cores >= size ? 1500 : 0;
  patience.yields = 20;
  patience.shared = shared;
  return patience;
}

Meeting::Result Meeting::wait(std::uint32_t mine, const Patience& patience, Deadline deadline) {
  Turns turns(patience);
  while (turns.next()) {
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if (number(seen) != mine) return {};
    if ((seen & kBroken) != 0) return {Outcome::kBroken};
  }
  return sleep(mine, patience.shared, deadline);
}

Meeting::Result Meeting::sleep(std::uint32_t mine, bool shared, Deadline deadline) {
  const auto start = Clock::now();
  // Counted before the word is looked at again: whoever changes it afterwards sees the count.
  sleepers_.fetch_add(1);
  Result result{Outcome::kLate};
  while (true) {
    const std::uint32_t seen = state_.load();
    if (number(seen) != mine) {
      result.outcome = Outcome::kMet;
      break;
    }
    if ((seen & kBroken) != 0) {
      result.outcome = Outcome::kBroken;
      break;
    }
    const auto now = Clock::now();
    result.slept_seconds = seconds_between(start, now);
    if (now >= deadline) break;
    futex_wait(state_, seen, shared, deadline - now);
  }
  sleepers_.fetch_sub(1);
  return result;
}

void Meeting::wake_sleepers(bool shared) {
  if (sleepers_.load() != 0) futex_wake_all(state_, shared);
}

bool Meeting::break_unless_held(std::uint32_t number_of_meeting, bool shared) {
  std::uint32_t seen = state_.load();
  do {
    if (seen / kOneMeeting != number_of_meeting) return false;
  } while (!state_.compare_exchange_weak(seen, seen | kBroken));
  futex_wake_all(state_, shared);
  return true;
}

void Meeting::break_up(bool shared) {
  state_.fetch_or(kBroken);
  futex_wake_all(state_, shared);
}

}  // namespace cohort
