#include "collectives/barrier.h"

#include <sched.h>

#include "collectives/futex.h"

namespace cohort::collectives {

SpinPolicy SpinPolicy::for_group(int size, bool shared, int cores) {
  cpu_set_t allowed;
  if (cores == 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cores = CPU_COUNT(&allowed);
  }
  SpinPolicy spin;
  // About as long as it takes to put a thread to sleep and to wake it.
  spin.looks = cores >= size ? 1500 : 0;
  spin.yields = 20;
  spin.shared = shared;
  return spin;
}

Barrier::Result Barrier::wait(std::uint32_t mine, const SpinPolicy& spin, Deadline deadline) {
  Turns turns(spin);
  while (turns.next()) {
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if (number(seen) != mine) return {};
    if ((seen & kBroken) != 0) return {Outcome::kBroken};
  }
  return sleep(mine, spin.shared, deadline);
}

Barrier::Result Barrier::sleep(std::uint32_t mine, bool shared, Deadline deadline) {
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

void Barrier::wake_sleepers(bool shared) {
  if (sleepers_.load() != 0) futex_wake_all(state_, shared);
}

bool Barrier::break_unless_held(std::uint32_t number_of_round, bool shared) {
  std::uint32_t seen = state_.load();
  do {
    if (seen / kOneRound != number_of_round) return false;
  } while (!state_.compare_exchange_weak(seen, seen | kBroken));
  futex_wake_all(state_, shared);
  return true;
}

void Barrier::break_up(bool shared) {
  state_.fetch_or(kBroken);
  futex_wake_all(state_, shared);
}

}  // namespace cohort::collectives
