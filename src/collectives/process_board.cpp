#include "collectives/process_board.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "collectives/farewell.h"
#include "collectives/peer_memory.h"
#include "collectives/process_life.h"
#include "collectives/sizes.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::chrono::milliseconds kBoardInterval{100};

}  // namespace

bool FailureNote::write(const std::string& text, bool orderly) {
  std::uint32_t empty = kEmpty;
  if (!state_.compare_exchange_strong(empty, kBeingWritten)) return false;
  const std::size_t length = std::min(text.size(), sizeof text_);
  std::memcpy(text_, text.data(), length);
  length_.store(static_cast<std::uint32_t>(length), std::memory_order_relaxed);
  orderly_.store(orderly ? 1 : 0);
  state_.store(kReadable, std::memory_order_release);
  return true;
}

std::string FailureNote::read() const {
  const Deadline patience = deadline_in(std::chrono::milliseconds(200));
  while (state_.load(std::memory_order_acquire) != kReadable) {
    if (Clock::now() >= patience) return "a rank failed before it could say why";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::size_t length = length_.load(std::memory_order_relaxed);
  return {text_, std::min(length, sizeof text_)};
}

struct alignas(kCacheLine) ProcessBoard::Entry {
  enum Status : std::uint32_t { kAbsent, kComing, kPresent, kEnded };
  std::atomic<std::uint32_t> status;
  std::atomic<std::uint32_t> heartbeat;
  std::atomic<std::int64_t> pid;
  std::atomic<std::uint64_t> start;
  std::atomic<std::uint64_t> number_space;
  std::atomic<std::uint64_t> probe_address;
  std::atomic<std::uint64_t> probe;
  std::atomic<std::uint64_t> cores[CPU_SETSIZE / 64];
};

namespace {

struct alignas(kCacheLine) Seat {
  Activity activity;
};

}  // namespace

std::size_t ProcessBoard::bytes(const Ranks& ranks) {
  std::size_t most = 0;
  for (const auto& own : ranks) most = std::max(most, own.size());
  return ranks.size() * (sizeof(Entry) + most * sizeof(Seat));
}

ProcessBoard::ProcessBoard(std::byte* memory, Ranks ranks, int own,
                           std::chrono::milliseconds silence,
                           std::function<void(const std::string&)> failed)
    : memory_(memory),
      ranks_(std::move(ranks)),
      own_(own),
      silence_(silence),
      failed_(std::move(failed)),
      probe_(static_cast<std::uint64_t>(Clock::now().time_since_epoch().count())) {
  COHORT_CHECK(own >= 0 && own < size(), "a process of the group makes its board");
  sign_in();
  watchdog_ = std::thread([this] { watch(); });
}

ProcessBoard::~ProcessBoard() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  watchdog_.join();
  entry(own_).status.store(Entry::kEnded);
}

ProcessBoard::Entry& ProcessBoard::entry(int process) const {
  return *std::launder(
      reinterpret_cast<Entry*>(memory_ + static_cast<std::size_t>(process) * sizeof(Entry)));
}

Activity& ProcessBoard::activity(int process, int index) const {
  const std::size_t per_process = bytes(ranks_) / ranks_.size();
  const std::size_t seats = ranks_.size() * sizeof(Entry);
  const std::size_t seat = (per_process - sizeof(Entry)) / sizeof(Seat) * process + index;
  return std::launder(reinterpret_cast<Seat*>(memory_ + seats + seat * sizeof(Seat)))->activity;
}

void ProcessBoard::sign_in() {
  Entry& own = entry(own_);
  std::uint32_t absent = Entry::kAbsent;
  if (!own.status.compare_exchange_strong(absent, Entry::kComing)) {
    throw PeerError(name(own_) + " is there already: two processes were started as the same one " +
                    "of a job");
  }
  own.pid.store(getpid());
  own.start.store(start_of_living_process(getpid()).value_or(0));
  own.number_space.store(process_number_space());
  own.probe_address.store(reinterpret_cast<std::uint64_t>(&probe_));
  own.probe.store(probe_);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed)) own.cores[core / 64].fetch_or(std::uint64_t{1} << core % 64);
    }
  }
  own.status.store(Entry::kPresent);
}

std::int64_t ProcessBoard::pid(int process) const { return entry(process).pid.load(); }

bool ProcessBoard::can_read_others() const {
  for (int process = 0; process < size(); ++process) {
    const Entry& other = entry(process);
    std::uint64_t found = 0;
    if (other.number_space.load() != entry(own_).number_space.load() ||
        !read_peer_memory(static_cast<pid_t>(other.pid.load()), other.probe_address.load(), &found,
                          sizeof found) ||
        found != other.probe.load()) {
      return false;
    }
  }
  return true;
}

int ProcessBoard::cores() const {
  int count = 0;
  for (int word = 0; word < CPU_SETSIZE / 64; ++word) {
    std::uint64_t all = 0;
    for (int process = 0; process < size(); ++process) all |= entry(process).cores[word].load();
    count += __builtin_popcountll(all);
  }
  return std::max(1, count);
}

void ProcessBoard::wait_for_all(Deadline deadline) const {
  while (true) {
    std::string missing;
    for (int process = 0; process < size(); ++process) {
      if (entry(process).status.load() >= Entry::kPresent) continue;
      missing += (missing.empty() ? "" : ", ") + list_of(ranks_[process]);
    }
    if (missing.empty()) return;
    if (Clock::now() >= deadline) {
      throw PeerError("of the processes of this host those of " + missing + " did not start");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string ProcessBoard::ranks(int process) const { return list_of(ranks_[process]); }

std::string ProcessBoard::name(int process) const {
  return list_of(ranks_[process]) + " (process " + std::to_string(entry(process).pid.load()) + ")";
}

std::string ProcessBoard::activities(int process) const {
  const auto& ranks = ranks_[process];
  if (ranks.size() == 1) return activity(process, 0).text();
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "rank " : ", rank ") + std::to_string(ranks[i]) + " " +
            activity(process, static_cast<int>(i)).text();
  }
  return text;
}

void ProcessBoard::watch() {
  std::vector<Watched> watched(ranks_.size());
  auto last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBoardInterval, [&] { return ending_; })) {
    lock.unlock();
    entry(own_).heartbeat.fetch_add(1);
    // When this process was stopped itself, the time it missed says nothing of the others.
    const auto now = Clock::now();
    const auto passed = std::min(std::chrono::duration_cast<std::chrono::milliseconds>(now - last),
                                 2 * kBoardInterval);
    last = now;
    for (int process = 0; process < size(); ++process) {
      if (process != own_) look_after(process, watched[process], passed);
    }
    lock.lock();
  }
}

void ProcessBoard::look_after(int process, Watched& watched, std::chrono::milliseconds passed) {
  const Entry& other = entry(process);
  if (watched.lost || other.status.load() != Entry::kPresent) return;
  const std::uint32_t heartbeat = other.heartbeat.load();
  watched.silent = heartbeat == watched.heartbeat ? watched.silent + passed : decltype(passed){0};
  watched.heartbeat = heartbeat;

  std::string message;
  if (other.number_space.load() == entry(own_).number_space.load() &&
      start_of_living_process(other.pid.load()) != other.start.load()) {
    // It may have said goodbye between the two looks.
    if (other.status.load() != Entry::kPresent) return;
    message = ranks_[process].size() == 1 ? name(process) + " was killed " + activities(process)
                                          : name(process) + " were killed: " + activities(process);
  } else if (watched.silent >= silence_) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s",
                  std::chrono::duration<double>(watched.silent).count());
    message = ranks_[process].size() == 1
                  ? name(process) + " has not answered for " + seconds + "; it was " +
                        activities(process) + " (stopped or swapped out?)"
                  : name(process) + " have not answered for " + seconds + ": " +
                        activities(process) + " (stopped or swapped out?)";
  }
  if (message.empty()) return;
  watched.lost = true;
  failed_(message);
}

}  // namespace cohort::collectives
