#include "collectives/futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "collectives/barrier.h"

namespace cohort::collectives {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::milliseconds(100);
constexpr std::chrono::microseconds kLongYield{50};

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, bool shared,
                std::chrono::nanoseconds at_most) {
  timespec timeout{};
  timeout.tv_nsec = std::min(at_most, kLongestSleep).count();
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
          shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word, bool shared) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
          shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Turns::next() {
  if (turn_ < patience_.looks) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  } else if (turn_ < patience_.looks + patience_.yields) {
    const auto before = Clock::now();
    if (turn_ > patience_.looks && before - last_yield_ > kLongYield) return false;
    last_yield_ = before;
    sched_yield();
  } else {
    return false;
  }
  ++turn_;
  return true;
}

}  // namespace cohort::collectives
