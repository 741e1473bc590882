#include "collectives/shared_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/auto_tuner.h"
#include "collectives/barrier.h"
#include "collectives/chunks.h"
#include "collectives/farewell.h"
#include "collectives/presence.h"
#include "collectives/sum.h"
#include "core/error.h"

namespace cohort::collectives {

std::string MemberNames::name(int member) const {
  const auto index = static_cast<std::size_t>(member);
  return "rank " + std::to_string(index < ranks.size() ? ranks[index] : member);
}

std::string MemberNames::activity(int member) const {
  const auto index = static_cast<std::size_t>(member);
  if (index >= activities.size() || activities[index] == nullptr) return "";
  return "; it was " + activities[index]->text();
}

namespace {

// What a rank brings to an operation.
struct Arrival {
  const char* operation = "";
  const void* data = nullptr;
  std::size_t bytes = 0;
  Rank root = 0;
  bool same_size = true;  // all ranks must bring as many bytes
  bool past_caches = false;
};

// The barrier place. An operation begins when all have come with matching arrivals; from then on
// they read each other's data until all have finished.
class Group {
 public:
  Group(int size, MemberNames names)
      : size_(size),
        names_(std::move(names)),
        patience_(SpinPolicy::for_group(size, false)),
        seats_(size),
        small_(size > 1 ? std::size_t{2} * size * kSmallFloats : 0) {}

  int size() const { return size_; }

  // Afterwards arrival() of every rank is valid until the rank calls finish(). Throws PeerError
  // when the group is or gets broken; then no rank passes, so nobody reads anybody's data.
  void begin(Rank rank, std::uint32_t operation, const Arrival& arrival, Deadline deadline) {
    const std::uint32_t number = entrance_.held();
    announce(rank, operation, arrival);
    std::string mismatch;
    const auto [outcome, slept] = entrance_.meet(size_, patience_, deadline, [&] {
      mismatch = find_mismatch(operation);
      return mismatch.empty();
    });
    if (outcome == Barrier::Outcome::kMet) return;
    if (outcome == Barrier::Outcome::kRefused) {
      fail(mismatch);
    } else if (outcome == Barrier::Outcome::kLate) {
      const std::lock_guard lock(mutex_);
      // All may have come while this rank made up its mind.
      if (!entrance_.break_unless_held(number, false)) return;
      if (failure_.empty()) failure_ = missing(arrival.operation, operation, slept);
    }
    throw PeerError(failure());
  }

  // The same for operations in which nobody reads another's data.
  void begin_small(Rank rank, std::uint32_t operation, const Arrival& arrival, Deadline deadline) {
    if (entrance_.broken()) throw PeerError(failure());
    announce(rank, operation, arrival);
    for (Rank other = 0; other < size_; ++other) {
      if (other == rank) continue;
      const auto [outcome, slept] =
          seats_[other].presence.await(operation, entrance_, patience_, deadline);
      if (outcome == Barrier::Outcome::kMet) continue;
      if (outcome == Barrier::Outcome::kLate) fail(missing(arrival.operation, operation, slept));
      throw PeerError(failure());
    }
    const std::string mismatch = find_mismatch(operation);
    if (mismatch.empty()) return;
    fail(mismatch);
    throw PeerError(failure());
  }

  // Waits until all have come here. Only between begin() and the end of an operation, when all are
  // sure to come.
  void finish() { inside_.meet(size_, patience_, Deadline::max()); }

  const Arrival& arrival(Rank rank, std::uint32_t operation) const {
    return seats_[rank].arrivals[operation % 2];
  }

  // Where a rank puts a small input. Two places by turns: while some ranks still read one, others
  // write the other, and nobody is more than one operation ahead.
  float* small(Rank rank, std::uint32_t operation) {
    return small_.data() + (operation % 2 * size_ + rank) * kSmallFloats;
  }

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
    entrance_.break_up(false);
    for (Seat& seat : seats_) seat.presence.wake_all(false);
  }

  const MemberNames& names() const { return names_; }

 private:
  static constexpr std::size_t kSmallFloats = kSmallBytes / sizeof(float);

  struct alignas(kCacheLine) Seat {
    Presence presence;
    Arrival arrivals[2];  // of operations by turns
  };

  void announce(Rank rank, std::uint32_t operation, const Arrival& arrival) {
    seats_[rank].arrivals[operation % 2] = arrival;
    seats_[rank].presence.announce(operation, false);
  }

  std::string find_mismatch(std::uint32_t operation) const {
    const Arrival& first = arrival(0, operation);
    for (Rank rank = 1; rank < size_; ++rank) {
      const Arrival& other = arrival(rank, operation);
      if (other.operation == first.operation && other.root == first.root &&
          (other.bytes == first.bytes || !first.same_size)) {
        continue;
      }
      const std::string who = names_.name(rank);
      if (std::strcmp(first.operation, other.operation) != 0) {
        return who + " called " + other.operation + " while " + names_.name(0) + " called " +
               first.operation;
      }
      if (first.same_size && first.bytes != other.bytes) {
        return who + " brought " + std::to_string(other.bytes) + " bytes to " + first.operation +
               ", " + names_.name(0) + " brought " + std::to_string(first.bytes);
      }
      if (first.root != other.root) {
        return who + " and " + names_.name(0) + " name different roots";
      }
    }
    return "";
  }

  std::string missing(const char* name, std::uint32_t operation, double waited) const {
    char duration[32];
    std::snprintf(duration, sizeof duration, "%.1f s", waited);
    std::string text;
    for (Rank rank = 0; rank < size_; ++rank) {
      if (seats_[rank].presence.announced(operation)) continue;
      text += (text.empty() ? "" : "; ") + names_.name(rank) + " has not come to " + name + " in " +
              duration + names_.activity(rank);
    }
    return text;
  }

  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  const int size_;
  const MemberNames names_;
  const SpinPolicy patience_;
  alignas(kCacheLine) Barrier entrance_;  // breaks when a rank fails or leaves
  alignas(kCacheLine) Barrier inside_;    // never breaks
  std::vector<Seat> seats_;               // by rank
  std::vector<float> small_;
  std::mutex mutex_;     // guards the next line
  std::string failure_;  // set no later than the entrance breaks
};

// Finishes at the end of the scope, also when an allocation throws: the others count on it.
class Reading {
 public:
  explicit Reading(Group& group) : group_(group) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { group_.finish(); }

 private:
  Group& group_;
};

class SharedMemoryCollectives final : public Collectives {
 public:
  SharedMemoryCollectives(std::shared_ptr<Group> group, Rank rank)
      : Collectives(rank, group->size()), group_(std::move(group)), inputs_(size()) {}
  ~SharedMemoryCollectives() override {
    group_->fail(group_->names().name(rank()) + " has left the group");
  }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    if (values.size_bytes() <= kSmallBytes && size() > 1) {
      small_all_reduce(values, deadline);
    } else {
      large_all_reduce(values, deadline);
    }
  }

  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    begin({"all_gather", own.data(), own.size(), 0, false}, deadline);
    const Reading reading(*group_);
    std::vector<Bytes> all;
    std::size_t total = 0;
    for (Rank from = 0; from < size(); ++from) {
      const Arrival& arrival = group_->arrival(from, operation_);
      const auto* first = static_cast<const std::byte*>(arrival.data);
      all.emplace_back(first, first + arrival.bytes);
      total += arrival.bytes;
    }
    count(own.size() * (size() - 1), total - own.size());
    return all;
  }

  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
    begin({"broadcast", bytes.data(), bytes.size(), root}, deadline);
    const Reading reading(*group_);
    if (rank() == root) {
      count(bytes.size() * (size() - 1), 0);
      return;
    }
    std::copy_n(static_cast<const std::byte*>(group_->arrival(root, operation_).data), bytes.size(),
                bytes.data());
    count(0, bytes.size());
  }

  void barrier(Deadline deadline) override {
    group_->begin_small(rank(), ++operation_, {"barrier"}, deadline);
  }

  void leave(const std::string& reason) override {
    group_->fail(farewell(group_->names().name(rank()), reason));
  }

  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

 private:
  void begin(const Arrival& arrival, Deadline deadline) {
    group_->begin(rank(), ++operation_, arrival, deadline);
  }

  void small_all_reduce(std::span<float> values, Deadline deadline) {
    ++operation_;
    std::copy(values.begin(), values.end(), group_->small(rank(), operation_));
    group_->begin_small(rank(), operation_, {"all_reduce", nullptr, values.size_bytes()}, deadline);
    // The own input from where it was: the others are reading the copy, line by line.
    for (Rank from = 0; from < size(); ++from) {
      inputs_[from] = from == rank() ? values.data() : group_->small(from, operation_);
    }
    sum_in_order(inputs_, values.data(), static_cast<std::int64_t>(values.size()));
    count(values.size_bytes() * (size() - 1), values.size_bytes() * (size() - 1));
  }

  void large_all_reduce(std::span<float> values, Deadline deadline) {
    // Rank 0 chooses for all how results are written. The bits are the same.
    const int way = rank() == 0 ? ways_.choose(values.size_bytes(), 2) : 0;
    begin({"all_reduce", values.data(), values.size_bytes(), 0, true, way == 1}, deadline);
    if (size() == 1) return;
    const auto start = Clock::now();
    const auto numel = static_cast<std::int64_t>(values.size());
    const Range own = chunk_of(numel, size(), rank());
    for (Rank from = 0; from < size(); ++from) inputs_[from] = input(from) + own.begin;
    if (group_->arrival(0, operation_).past_caches) {
      sum_past_caches(inputs_, values.data() + own.begin, own.size);
    } else {
      sum_in_order(inputs_, values.data() + own.begin, own.size);
    }
    group_->finish();
    // Each begins with another owner, so that they do not all read from the same one.
    for (int i = 1; i < size(); ++i) {
      const Rank from = (rank() + i) % size();
      const Range chunk = chunk_of(numel, size(), from);
      std::memcpy(values.data() + chunk.begin, input(from) + chunk.begin,
                  static_cast<std::size_t>(chunk.size) * sizeof(float));
    }
    const std::uint64_t moved = (own.size * (size() - 1) + numel - own.size) * sizeof(float);
    count(moved, moved);
    group_->finish();
    if (rank() == 0) ways_.took(values.size_bytes(), way, seconds_between(start, Clock::now()));
  }

  const float* input(Rank from) const {
    return static_cast<const float*>(group_->arrival(from, operation_).data);
  }

  void count(std::uint64_t sent, std::uint64_t received) {
    sent_.fetch_add(sent, std::memory_order_relaxed);
    received_.fetch_add(received, std::memory_order_relaxed);
  }

  std::shared_ptr<Group> group_;
  std::vector<const float*> inputs_;  // by rank; kept to save the allocation
  AutoTuner ways_;                    // of writing long sums: in the caches, past them; rank 0's
  std::uint32_t operation_ = 0;       // how many were begun; all ranks count alike
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(int size, MemberNames names) {
  if (size < 1 || size > Barrier::kMaxSize) {
    throw ConfigError("a group of threads has 1 to " + std::to_string(Barrier::kMaxSize) +
                      " ranks, not " + std::to_string(size));
  }
  const auto group = std::make_shared<Group>(size, std::move(names));
  std::vector<std::unique_ptr<Collectives>> members;
  members.reserve(size);
  for (Rank rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<SharedMemoryCollectives>(group, rank));
  }
  return members;
}

std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(
    int size, std::vector<std::shared_ptr<Activity>> activities) {
  return make_shared_memory_group(size, MemberNames{{}, std::move(activities)});
}

}  // namespace cohort::collectives
