#include "collectives/mpi_collectives.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/farewell.h"
#include "collectives/mpi_calls.h"
#include "collectives/mpi_heartbeat.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

class Link final : public MpiLink, public std::enable_shared_from_this<Link> {
 public:
  Link(MPI_Comm communicator, MpiMembers members, Deadline deadline)
      : communicator_(copy_of(communicator, deadline)),
        heartbeat_(copy_of(communicator, deadline), std::move(members)) {}

  std::unique_ptr<Collectives> channel(Deadline deadline) override;
  std::string failure() const override { return heartbeat_.failure(); }
  void close() override {
    heartbeat_.stop();
    heartbeat_.fail("this process has left the group");
  }

  MpiHeartbeat& heartbeat() { return heartbeat_; }

 private:
  const MPI_Comm communicator_;
  std::atomic<int> channels_ = 0;
  MpiHeartbeat heartbeat_;
};

class MpiChannel final : public Collectives {
 public:
  MpiChannel(std::shared_ptr<Link> link, MPI_Comm communicator, int channel)
      : Collectives(link->heartbeat().own(), link->heartbeat().size()),
        link_(std::move(link)),
        communicator_(communicator),
        channel_(channel) {}
  ~MpiChannel() override {
    // MPI may still write to what an operation that was given up was using.
    if (heartbeat().failed()) new Bytes(std::move(piece_));
  }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    agree(Kind::kAllReduce, values.size_bytes(), 0, deadline);
    if (size() == 1) return;
    constexpr std::size_t kFloats = kPieceBytes / sizeof(float);
    for (std::size_t begin = 0; begin < values.size(); begin += kFloats) {
      const auto part = values.subspan(begin, std::min(kFloats, values.size() - begin));
      std::memcpy(room(part.size_bytes()), part.data(), part.size_bytes());
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, piece_.data(), static_cast<int>(part.size()),
                               MPI_FLOAT, MPI_SUM, communicator_, &request),
                "MPI_Iallreduce");
      wait(request, Kind::kAllReduce, deadline);
      std::memcpy(part.data(), piece_.data(), part.size_bytes());
    }
    const std::uint64_t others = size() - 1;
    count(2 * values.size_bytes() * others / size(), 2 * values.size_bytes() * others / size());
  }

  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    agree(Kind::kAllGather, 0, 0, deadline);
    std::vector<std::uint64_t> lengths(size());
    room(size() * sizeof(std::uint64_t));
    const std::uint64_t length = own.size();
    std::memcpy(piece_.data() + rank() * sizeof length, &length, sizeof length);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, piece_.data(), sizeof length,
                             MPI_BYTE, communicator_, &request),
              "MPI_Iallgather");
    wait(request, Kind::kAllGather, deadline);
    std::memcpy(lengths.data(), piece_.data(), lengths.size() * sizeof length);
    std::vector<Bytes> all(size());
    std::uint64_t total = 0;
    for (Rank from = 0; from < size(); ++from) {
      all[from].resize(lengths[from]);
      if (from == rank()) std::copy(own.begin(), own.end(), all[from].begin());
      spread(all[from], from, Kind::kAllGather, deadline);
      total += lengths[from];
    }
    count(length * (size() - 1), total - length);
    return all;
  }

  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
    agree(Kind::kBroadcast, bytes.size(), root, deadline);
    spread(bytes, root, Kind::kBroadcast, deadline);
    if (rank() == root) {
      count(bytes.size() * (size() - 1), 0);
    } else {
      count(0, bytes.size());
    }
  }

  void barrier(Deadline deadline) override { agree(Kind::kBarrier, 0, 0, deadline); }

  void leave(const std::string& reason) override {
    heartbeat().raise_alarm(farewell(heartbeat().name(rank()), reason));
  }

  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

 private:
  enum class Kind : std::int64_t { kAllReduce, kAllGather, kBroadcast, kBarrier };

  static const char* name(Kind kind) {
    constexpr std::array kNames{"all_reduce", "all_gather", "broadcast", "barrier"};
    return kNames[static_cast<std::size_t>(kind)];
  }

  // Throws PeerError unless all members do the same.
  void agree(Kind kind, std::size_t bytes, Rank root, Deadline deadline) {
    if (heartbeat().failed()) throw PeerError(heartbeat().failure());
    operation_ = heartbeat().begin(channel_);
    if (size() == 1) return;
    const std::int64_t own[] = {static_cast<std::int64_t>(kind), static_cast<std::int64_t>(bytes),
                                root};
    // The largest of each and of its opposite: they add up to nothing when all are equal.
    std::int64_t both[6];
    for (int i = 0; i < 3; ++i) {
      both[i] = own[i];
      both[i + 3] = -own[i];
    }
    std::memcpy(room(sizeof both), both, sizeof both);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, piece_.data(), 6, MPI_INT64_T, MPI_MAX, communicator_,
                             &request),
              "MPI_Iallreduce");
    wait(request, kind, deadline);
    std::memcpy(both, piece_.data(), sizeof both);
    for (int i = 0; i < 3; ++i) {
      if (both[i] + both[i + 3] == 0) continue;
      heartbeat().raise_alarm(
          "ranks on different hosts called different operations, or the same with "
          "different sizes; " +
          heartbeat().name(rank()) + " called " + name(kind) + " with " + std::to_string(bytes) +
          " bytes");
      throw PeerError(heartbeat().failure());
    }
  }

  // Pieces of `bytes` from `root` to all.
  void spread(std::span<std::byte> bytes, Rank root, Kind kind, Deadline deadline) {
    if (size() == 1) return;
    for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
      const auto part = bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin));
      room(part.size());
      if (rank() == root) std::memcpy(piece_.data(), part.data(), part.size());
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Ibcast(piece_.data(), static_cast<int>(part.size()), MPI_BYTE, root,
                           communicator_, &request),
                "MPI_Ibcast");
      wait(request, kind, deadline);
      if (rank() != root) std::memcpy(part.data(), piece_.data(), part.size());
    }
  }

  void wait(MPI_Request& request, Kind kind, Deadline deadline) {
    const auto start = Clock::now();
    bool complete = false;
    try {
      complete = wait_for(request, deadline, [this] {
        heartbeat().look_up();
        return false;
      });
    } catch (const PeerError& error) {
      heartbeat().raise_alarm(error.what());
      throw PeerError(heartbeat().failure());
    }
    if (complete) return;
    char waited[32];
    std::snprintf(waited, sizeof waited, "%.1f s", seconds_between(start, Clock::now()));
    std::string text;
    for (int member = 0; member < size(); ++member) {
      if (member == rank() || !heartbeat().missed(member, channel_, operation_)) continue;
      text += (text.empty() ? "" : "; ") + heartbeat().name(member) + " has not come to " +
              name(kind) + " in " + waited + "; last heard " + heartbeat().activities(member);
    }
    if (text.empty()) text = std::string(name(kind)) + " between hosts took longer than " + waited;
    heartbeat().raise_alarm(text);
    throw PeerError(heartbeat().failure());
  }

  MpiHeartbeat& heartbeat() const { return link_->heartbeat(); }

  std::byte* room(std::size_t bytes) {
    if (piece_.size() < bytes) piece_.resize(bytes);
    return piece_.data();
  }

  void count(std::uint64_t sent, std::uint64_t received) {
    sent_.fetch_add(sent, std::memory_order_relaxed);
    received_.fetch_add(received, std::memory_order_relaxed);
  }

  std::shared_ptr<Link> link_;
  const MPI_Comm communicator_;
  const int channel_;
  std::uint64_t operation_ = 0;  // how many were begun
  Bytes piece_;                  // what MPI works on
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
};

std::unique_ptr<Collectives> Link::channel(Deadline deadline) {
  const int number = channels_++;
  COHORT_CHECK(number < MpiHeartbeat::kMaxChannels, "too many channels");
  return std::make_unique<MpiChannel>(shared_from_this(), copy_of(communicator_, deadline), number);
}

}  // namespace

std::shared_ptr<MpiLink> MpiLink::create(MPI_Comm communicator, MpiMembers members,
                                         Deadline deadline) {
  return std::make_shared<Link>(communicator, std::move(members), deadline);
}

}  // namespace cohort::collectives
