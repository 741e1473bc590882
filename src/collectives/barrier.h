// Where the ranks of a group wait for each other: a barrier that can break.
//
// One word of memory that threads and processes can share: it may lie in a shared mapping, and
// nothing that it holds, whoever wrote it, can do more than end a wait. Ranks meet again and again;
// a rank takes part in every round, so nobody is ever more than one round ahead.
//
// Once broken, no later rank passes and none that waits does; a round that all had come to before
// counts as held, also for those who have not noticed yet.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace cohort::collectives {

// How a rank waits: first it looks again and again, then it lets others run, then it sleeps.
struct SpinPolicy {
  int looks = 0;   // with a pause of some nanoseconds each
  int yields = 0;  // each gives the core to another thread that can run; ends when one keeps it
  bool shared = false;  // the barrier lies in memory shared with other processes

  // For `size` ranks: looking only pays where every rank has a core to itself. `cores` is how many
  // they may use; 0: as many as this process may.
  static SpinPolicy for_group(int size, bool shared, int cores = 0);
};

class Barrier {
 public:
  static constexpr int kMaxSize = 2047;

  enum class Outcome {
    kMet,
    kBroken,
    kRefused,  // by this rank's own `agree`
    kLate,     // not all had come by the deadline
  };
  struct Result {
    Outcome outcome = Outcome::kMet;
    double slept_seconds = 0;  // of those it waited
  };

  // Comes and waits for the others. The last of `size` ranks to come calls agree() while all others
  // wait; when that is false it neither opens nor breaks: that is for the caller to do. All that a
  // rank wrote before is visible to every rank afterwards.
  template <class Agree>
  Result meet(int size, const SpinPolicy& spin, Deadline deadline, Agree&& agree) {
    std::uint32_t seen = state_.load(std::memory_order_acquire);
    while (true) {
      if ((seen & kBroken) != 0) return {Outcome::kBroken};
      const bool last = come(seen) + 1 >= static_cast<std::uint32_t>(size);
      if (last && !agree()) return {Outcome::kRefused};
      const std::uint32_t next = last ? number(seen) + kOneRound : seen + kOneCome;
      if (state_.compare_exchange_weak(seen, next)) {
        if (last) wake_sleepers(spin.shared);
        return last ? Result{} : wait(number(seen), spin, deadline);
      }
    }
  }

  Result meet(int size, const SpinPolicy& spin, Deadline deadline) {
    return meet(size, spin, deadline, [] { return true; });
  }

  // Breaks it and wakes all who wait.
  void break_up(bool shared);

  // The same, unless round `number` has been held meanwhile: then false, and nothing changes.
  bool break_unless_held(std::uint32_t number, bool shared);

  bool broken() const { return (state_.load(std::memory_order_acquire) & kBroken) != 0; }

  // Counts the rounds held, from 0 again after some 10^6. For a rank that has not come yet this
  // is the number of its next one.
  std::uint32_t held() const { return state_.load(std::memory_order_acquire) / kOneRound; }

 private:
  // 1 bit that says broken, 11 of how many have come, 20 of the round's number.
  static constexpr std::uint32_t kBroken = 1;
  static constexpr std::uint32_t kOneCome = 2;
  static constexpr std::uint32_t kOneRound = 1U << 12;

  static std::uint32_t come(std::uint32_t state) { return state % kOneRound / kOneCome; }
  static std::uint32_t number(std::uint32_t state) { return state / kOneRound * kOneRound; }

  Result wait(std::uint32_t mine, const SpinPolicy& spin, Deadline deadline);
  Result sleep(std::uint32_t mine, bool shared, Deadline deadline);
  void wake_sleepers(bool shared);

  std::atomic<std::uint32_t> state_ = 0;
  std::atomic<std::uint32_t> sleepers_ = 0;  // how many may have to be woken
};

}  // namespace cohort::collectives
