#include "collectives/presence.h"

#include "collectives/futex.h"

namespace cohort::collectives {

void Presence::announce(std::uint32_t number, bool shared) {
  number_.store(number);
  if (sleepers_.load() != 0) futex_wake_all(number_, shared);
}

void Presence::wake_all(bool shared) { futex_wake_all(number_, shared); }

Barrier::Result Presence::await(std::uint32_t number, const Barrier& group, const SpinPolicy& spin,
                                Deadline deadline) {
  if (announced(number)) return {};
  // The group is looked at first: a member that comes, is through and leaves breaks it, and has
  // announced the number before.
  Turns turns(spin);
  while (turns.next()) {
    const bool broken = group.broken();
    if (announced(number)) return {};
    if (broken) return {Barrier::Outcome::kBroken};
  }
  const auto start = Clock::now();
  // Counted before the number is looked at again: whoever changes it afterwards sees the count.
  sleepers_.fetch_add(1);
  Barrier::Result result{Barrier::Outcome::kLate};
  while (true) {
    const bool broken = group.broken();
    const std::uint32_t seen = number_.load();
    if (announced(number)) {
      result.outcome = Barrier::Outcome::kMet;
      break;
    }
    if (broken) {
      result.outcome = Barrier::Outcome::kBroken;
      break;
    }
    const auto now = Clock::now();
    result.slept_seconds = seconds_between(start, now);
    if (now >= deadline) break;
    futex_wait(number_, seen, spin.shared, deadline - now);
  }
  sleepers_.fetch_sub(1);
  return result;
}

}  // namespace cohort::collectives
