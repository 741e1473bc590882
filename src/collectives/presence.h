// A member's sign that it has come to an operation, which each of the others looks at by itself:
// the quickest way to meet, without a word that all change.
//
// One for each member, in memory that threads or processes share; zeros are a new one. Members
// count their operations alike, from 1. Nobody is ever more than one operation ahead of another,
// because it has waited for all in the one before.
//
// Unlike a Barrier this does not hold for all or for none: at a deadline some may pass and others
// not. So it serves only where nobody reads what a member that has given up may free.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/barrier.h"

namespace cohort::collectives {

class Presence {
 public:
  // All that the member wrote before is visible to those who await() this number.
  void announce(std::uint32_t number, bool shared);

  // Waits until the member has announced `number`, or a later one; ends early with kBroken when
  // `group` breaks, or with kLate at the deadline.
  Barrier::Result await(std::uint32_t number, const Barrier& group, const SpinPolicy& spin,
                        Deadline deadline);

  bool announced(std::uint32_t number) const {
    return static_cast<std::int32_t>(number_.load(std::memory_order_acquire) - number) >= 0;
  }

  // Makes all who wait look at the group again.
  void wake_all(bool shared);

 private:
  std::atomic<std::uint32_t> number_ = 0;
  std::atomic<std::uint32_t> sleepers_ = 0;  // how many may have to be woken
};

}  // namespace cohort::collectives
