#include "collectives/meeting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace cohort {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// A process that stops between two looks must not sleep through what it missed.
constexpr std::chrono::milliseconds kLongestSleep{100};

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, bool shared,
                std::chrono::nanoseconds at_most) {
  timespec timeout{};
  timeout.tv_sec = at_most.count() / 1'000'000'000;
  timeout.tv_nsec = at_most.count() % 1'000'000'000;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
          shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word, bool shared) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
          shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

Patience Patience::for_group(int size, bool shared, int cores) {
  cpu_set_t allowed;
  if (cores == 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cores = CPU_COUNT(&allowed);
  }
  Patience patience;
  patience.looks = cores >= size ? 2000 : 0;
  patience.yields = 20;
  patience.shared = shared;
  return patience;
}

Meeting::Outcome Meeting::wait(std::uint32_t mine, const Patience& patience, Deadline deadline) {
  for (int i = 0; i < patience.looks + patience.yields; ++i) {
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if (number(seen) != mine) return Outcome::kMet;
    if ((seen & kBroken) != 0) return Outcome::kBroken;
    if (i < patience.looks) {
      pause_briefly();
    } else {
      sched_yield();
    }
  }
  return sleep(mine, patience.shared, deadline);
}

Meeting::Outcome Meeting::sleep(std::uint32_t mine, bool shared, Deadline deadline) {
  // Counted before the word is looked at again: whoever changes it afterwards sees the count.
  sleepers_.fetch_add(1);
  Outcome outcome = Outcome::kLate;
  while (true) {
    const std::uint32_t seen = state_.load();
    if (number(seen) != mine) {
      outcome = Outcome::kMet;
      break;
    }
    if ((seen & kBroken) != 0) {
      outcome = Outcome::kBroken;
      break;
    }
    const auto now = Clock::now();
    if (now >= deadline) break;
    futex_wait(state_, seen, shared,
               std::min<std::chrono::nanoseconds>(deadline - now, kLongestSleep));
  }
  sleepers_.fetch_sub(1);
  return outcome;
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
