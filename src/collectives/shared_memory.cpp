#include "collectives/shared_memory.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/chunks.h"
#include "core/error.h"

namespace cohort {
namespace {

// What a rank brings to an operation.
struct Arrival {
  const char* operation = "";
  const void* data = nullptr;
  std::size_t bytes = 0;
  Rank root = 0;
  bool same_size = true;  // all ranks must bring as many bytes
};

// The meeting place. An operation is two phases: meet() until all have come with matching
// arrivals, then reading of each other's data until all have called leave().
class Group {
 public:
  explicit Group(int size) : arrivals_(size), present_(size, false) {}

  int size() const { return static_cast<int>(arrivals_.size()); }

  // Afterwards arrival() of every rank is valid until the rank calls leave(). Throws PeerError when
  // the group is or gets broken; then no rank passes, so nobody reads anybody's data.
  void meet(Rank rank, const Arrival& arrival, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw PeerError(failure_);
    arrivals_[rank] = arrival;
    present_[rank] = true;
    if (++present_count_ == size()) {
      const std::string mismatch = find_mismatch();
      if (!mismatch.empty()) fail(mismatch);
      open();
      return;
    }
    const std::uint64_t mine = meeting_;
    const bool done =
        changed_.wait_until(lock, deadline, [&] { return meeting_ != mine || !failure_.empty(); });
    if (meeting_ != mine) return;
    if (done) throw PeerError(failure_);
    fail("rank " + std::to_string(rank) + " waited in vain in " + arrival.operation + " for " +
         missing());
  }

  void leave() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = leaving_;
    if (++left_count_ == size()) {
      left_count_ = 0;
      ++leaving_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return leaving_ != mine; });
  }

  const Arrival& arrival(Rank rank) const { return arrivals_[rank]; }

  // Room for the sum, made by the last rank to come, when no other rank can be using it.
  float* sum() { return sum_.data(); }

  void quit(Rank rank) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = "rank " + std::to_string(rank) + " has left the group";
    changed_.notify_all();
  }

 private:
  void open() {
    if (std::strcmp(arrivals_[0].operation, "all_reduce") == 0) {
      sum_.resize(std::max(sum_.size(), arrivals_[0].bytes / sizeof(float)));
    }
    present_.assign(present_.size(), false);
    present_count_ = 0;
    ++meeting_;
    changed_.notify_all();
  }

  std::string find_mismatch() const {
    const Arrival& first = arrivals_[0];
    for (Rank rank = 1; rank < size(); ++rank) {
      const Arrival& other = arrivals_[rank];
      const std::string who = "rank " + std::to_string(rank);
      if (std::strcmp(first.operation, other.operation) != 0) {
        return who + " called " + other.operation + " while rank 0 called " + first.operation;
      }
      if (first.same_size && first.bytes != other.bytes) {
        return who + " brought " + std::to_string(other.bytes) + " bytes to " + first.operation +
               ", rank 0 brought " + std::to_string(first.bytes);
      }
      if (first.root != other.root) return who + " and rank 0 name different roots";
    }
    return "";
  }

  std::string missing() const {
    std::string names;
    for (Rank rank = 0; rank < size(); ++rank) {
      if (present_[rank]) continue;
      names += (names.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    return names;
  }

  [[noreturn]] void fail(const std::string& reason) {
    failure_ = reason;
    changed_.notify_all();
    throw PeerError(failure_);
  }

  std::mutex mutex_;  // guards everything below, but for reading arrivals_ and using sum_ while
                      // between meet() and leave(), when nobody changes them
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;  // by rank
  std::vector<bool> present_;      // by rank
  int present_count_ = 0;
  int left_count_ = 0;
  std::uint64_t meeting_ = 0;
  std::uint64_t leaving_ = 0;
  std::string failure_;  // empty while the group is whole
  std::vector<float> sum_;
};

// Leaves at the end of the scope, also when an allocation throws: the others count on it.
class Reading {
 public:
  explicit Reading(Group& group) : group_(group) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { group_.leave(); }

 private:
  Group& group_;
};

class SharedMemoryCollectives final : public Collectives {
 public:
  SharedMemoryCollectives(std::shared_ptr<Group> group, Rank rank)
      : group_(std::move(group)), rank_(rank) {}
  SharedMemoryCollectives(const SharedMemoryCollectives&) = delete;
  SharedMemoryCollectives& operator=(const SharedMemoryCollectives&) = delete;
  ~SharedMemoryCollectives() override { group_->quit(rank_); }

  Rank rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    group_->meet(rank_, {"all_reduce", values.data(), values.size_bytes()}, deadline);
    {
      const Reading reading(*group_);
      sum_chunk(static_cast<std::int64_t>(values.size()));
    }
    // The next meeting that could change the sum needs this rank.
    std::copy_n(group_->sum(), values.size(), values.data());
  }

  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    group_->meet(rank_, {"all_gather", own.data(), own.size(), 0, false}, deadline);
    const Reading reading(*group_);
    std::vector<Bytes> all;
    for (Rank from = 0; from < size(); ++from) {
      const Arrival& arrival = group_->arrival(from);
      const auto* begin = static_cast<const std::byte*>(arrival.data);
      all.emplace_back(begin, begin + arrival.bytes);
    }
    return all;
  }

  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
    group_->meet(rank_, {"broadcast", bytes.data(), bytes.size(), root}, deadline);
    const Reading reading(*group_);
    if (rank_ == root) return;
    std::copy_n(static_cast<const std::byte*>(group_->arrival(root).data), bytes.size(),
                bytes.data());
  }

  void barrier(Deadline deadline) override { group_->meet(rank_, {"barrier"}, deadline); }

 private:
  void sum_chunk(std::int64_t numel) {
    // Blocks that stay in the first-level cache while all ranks' inputs are added to them.
    constexpr std::int64_t kBlock = 4096;
    const Range chunk = chunk_of(numel, size(), rank_);
    for (std::int64_t begin = chunk.begin; begin < chunk.end(); begin += kBlock) {
      const std::int64_t count = std::min(kBlock, chunk.end() - begin);
      float* out = group_->sum() + begin;
      std::copy_n(input(0) + begin, count, out);
      for (Rank from = 1; from < size(); ++from) {
        const float* in = input(from) + begin;
        for (std::int64_t i = 0; i < count; ++i) out[i] += in[i];
      }
    }
  }

  const float* input(Rank from) const {
    return static_cast<const float*>(group_->arrival(from).data);
  }

  std::shared_ptr<Group> group_;
  Rank rank_;
};

}  // namespace

std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(int size) {
  if (size < 1) {
    throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  }
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Collectives>> members;
  members.reserve(size);
  for (Rank rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<SharedMemoryCollectives>(group, rank));
  }
  return members;
}

}  // namespace cohort
