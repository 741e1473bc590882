#include "collectives/mpi_collectives.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kInterval{250};
constexpr int kHeartbeatTag = 1;
constexpr int kAlarmTag = 2;
constexpr std::size_t kLongestAlarm = 1000;

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw PeerError(std::string(call) + " failed: " + std::string(text, length));
}

std::string list_of(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

MPI_Comm copy_of(MPI_Comm communicator, Deadline deadline) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(communicator, &copy, &request), "MPI_Comm_idup");
  if (!wait_for(request, deadline)) {
    throw PeerError("not all processes answered while the group was built");
  }
  check(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

constexpr int kMostChannels = 8;
// What a heartbeat says: first how many operations the member has begun on each channel, then of
// each rank what it is doing.
using Begun = std::array<std::uint64_t, kMostChannels>;
struct Pulse {
  std::int64_t step = 0;
  std::uint64_t phase = 0;
};

class Link final : public MpiLink, public std::enable_shared_from_this<Link> {
 public:
  Link(MPI_Comm communicator, MpiMembers members, Deadline deadline)
      : communicator_(copy_of(communicator, deadline)), members_(std::move(members)) {
    check(MPI_Comm_rank(communicator_, &own_), "MPI_Comm_rank");
    check(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
    COHORT_CHECK(members_.ranks.size() == static_cast<std::size_t>(size_) &&
                     members_.hosts.size() == members_.ranks.size() &&
                     members_.activities.size() == members_.ranks[own_].size(),
                 "every member is described");
    heard_.resize(size_);
    for (int member = 0; member < size_; ++member) {
      heard_[member].activities = std::vector<Activity>(members_.ranks[member].size());
    }
    listener_ = std::thread([this] { listen(); });
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() override { stop(); }

  void close() override {
    stop();
    fail("this process has left the group");
  }

  std::unique_ptr<Collectives> channel(Deadline deadline) override;

  std::string failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
    failed_.store(true, std::memory_order_release);
  }

  // Fails and tells all others.
  void raise_alarm(const std::string& reason) {
    if (failed() || size_ == 1) return fail(reason);
    // MPI reads the text when it will; the memory is its for good.
    auto* text = new std::string(reason.substr(0, kLongestAlarm));
    std::vector<MPI_Request> requests;
    for (int to = 0; to < size_; ++to) {
      if (to == own_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_BYTE, to, kAlarmTag,
                communicator_, &request);
      requests.push_back(request);
    }
    // A moment for the text to leave; who does not take it now learns from this member's silence.
    const Deadline moment = deadline_in(std::chrono::milliseconds(200));
    int complete = 0;
    while (complete == 0 && Clock::now() < moment) {
      if (MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete,
                      MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
        break;
      }
      if (complete == 0) sched_yield();
    }
    fail(reason);
  }

  // Looks whether somebody raised the alarm or this host has failed. Throws PeerError if so.
  void look_up() {
    if (!failed() && members_.host_failure) {
      const std::string reason = members_.host_failure();
      if (!reason.empty()) raise_alarm(reason);
    }
    if (!failed()) take_alarm();
    if (failed()) throw PeerError(failure());
  }

  std::string name(int member) const {
    return list_of(members_.ranks[member]) + " on " + members_.hosts[member];
  }

  // Another operation of a channel; returns how many there have been.
  std::uint64_t begin(int channel) { return ++begun_[channel]; }

  // Whether a member was last heard of before it came to an operation.
  bool missed(int member, int channel, std::uint64_t operation) const {
    const std::lock_guard lock(mutex_);
    return heard_[member].begun[channel] < operation;
  }

  // The last that was heard of a member's ranks.
  std::string activities(int member) const {
    const std::lock_guard lock(mutex_);
    const auto& ranks = members_.ranks[member];
    std::string text;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks.size() > 1) text += (i == 0 ? "rank " : ", rank ") + std::to_string(ranks[i]) + " ";
      text += heard_[member].activities[i].text();
    }
    return text;
  }

  MPI_Comm communicator() const { return communicator_; }
  int own() const { return own_; }
  int size() const { return size_; }

 private:
  struct Heard {
    Begun begun{};
    std::vector<Activity> activities;  // of the member's ranks, as last told
    std::chrono::milliseconds silent{0};
    bool anything = false;
  };

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    if (listener_.joinable()) listener_.join();
  }

  // One thread takes alarms at a time, so that none is probed twice.
  void take_alarm() {
    const std::unique_lock lock(probing_, std::try_to_lock);
    if (!lock) return;
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kAlarmTag, communicator_, &found, &status) != MPI_SUCCESS ||
        found == 0) {
      return;
    }
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::string text(static_cast<std::size_t>(std::max(0, length)), '\0');
    if (MPI_Recv(text.data(), length, MPI_BYTE, status.MPI_SOURCE, kAlarmTag, communicator_,
                 MPI_STATUS_IGNORE) == MPI_SUCCESS) {
      fail(text);
    }
  }

  void listen() {
    std::vector<Bytes> outgoing(size_);
    std::vector<MPI_Request> requests(size_, MPI_REQUEST_NULL);
    auto last = Clock::now();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kInterval, [&] { return ending_; })) {
      lock.unlock();
      const auto now = Clock::now();
      // When this process was stopped itself, the time it missed says nothing of the others.
      const auto passed = std::min(
          std::chrono::duration_cast<std::chrono::milliseconds>(now - last), 2 * kInterval);
      last = now;
      try {
        look_up();
        for (int to = 0; to < size_; ++to) tell(to, outgoing[to], requests[to]);
        hear(passed);
      } catch (const PeerError& error) {
        fail(error.what());
        for (auto& buffer : outgoing) new Bytes(std::move(buffer));  // still MPI's
        return;
      }
      lock.lock();
    }
    lock.unlock();
    part_quietly(outgoing, requests);
  }

  void tell(int to, Bytes& buffer, MPI_Request& request) {
    if (to == own_) return;
    int complete = 0;
    check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    if (complete == 0) return;  // it has not taken the last one yet
    buffer.resize(sizeof(Begun) + members_.activities.size() * sizeof(Pulse));
    Begun begun{};
    for (int channel = 0; channel < kMostChannels; ++channel) begun[channel] = begun_[channel];
    std::memcpy(buffer.data(), begun.data(), sizeof begun);
    for (std::size_t i = 0; i < members_.activities.size(); ++i) {
      const Activity& activity = *members_.activities[i];
      const Pulse pulse{activity.step(), static_cast<std::uint64_t>(activity.phase())};
      std::memcpy(buffer.data() + sizeof begun + i * sizeof pulse, &pulse, sizeof pulse);
    }
    check(MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, to, kHeartbeatTag,
                    communicator_, &request),
          "MPI_Isend");
  }

  void hear(std::chrono::milliseconds passed) {
    for (int from = 0; from < size_; ++from) {
      if (from == own_) continue;
      Heard& heard = heard_[from];
      heard.silent += passed;
      while (hear_one(from, heard)) heard.silent = decltype(passed){0};
      if (heard.silent < members_.silence || !heard.anything) continue;
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.1f s", 1e-3 * heard.silent.count());
      raise_alarm(name(from) + (members_.ranks[from].size() == 1 ? " has" : " have") +
                  " not answered for " + seconds + "; last heard " + activities(from));
      throw PeerError(failure());
    }
  }

  bool hear_one(int from, Heard& heard) {
    int found = 0;
    MPI_Status status;
    check(MPI_Iprobe(from, kHeartbeatTag, communicator_, &found, &status), "MPI_Iprobe");
    if (found == 0) return false;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    Bytes bytes(static_cast<std::size_t>(std::max(0, length)));
    check(MPI_Recv(bytes.data(), length, MPI_BYTE, from, kHeartbeatTag, communicator_,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    if (bytes.size() < sizeof(Begun)) return true;
    const std::lock_guard lock(mutex_);
    std::memcpy(heard.begun.data(), bytes.data(), sizeof(Begun));
    const std::size_t count =
        std::min((bytes.size() - sizeof(Begun)) / sizeof(Pulse), heard.activities.size());
    for (std::size_t i = 0; i < count; ++i) {
      Pulse pulse;
      std::memcpy(&pulse, bytes.data() + sizeof(Begun) + i * sizeof pulse, sizeof pulse);
      heard.activities[i].set(pulse.step, static_cast<Phase>(pulse.phase));
    }
    heard.anything = true;
    return true;
  }

  // Takes what others still send for a moment, so that their last messages are not left over.
  void part_quietly(std::vector<Bytes>& outgoing, std::vector<MPI_Request>& requests) {
    const Deadline moment = deadline_in(std::chrono::milliseconds(500));
    int complete = 0;
    while (complete == 0 && Clock::now() < moment && !failed()) {
      if (MPI_Testall(size_, requests.data(), &complete, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
      if (complete == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (complete == 0) {
      for (auto& buffer : outgoing) new Bytes(std::move(buffer));
    }
  }

  const MPI_Comm communicator_;
  const MpiMembers members_;
  int own_ = 0;
  int size_ = 1;
  std::array<std::atomic<std::uint64_t>, kMostChannels> begun_{};  // operations, by channel
  std::atomic<int> channels_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex probing_;
  mutable std::mutex mutex_;  // guards the next four
  std::string failure_;
  std::vector<Heard> heard_;  // by member
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread listener_;
};

class MpiChannel final : public Collectives {
 public:
  MpiChannel(std::shared_ptr<Link> link, MPI_Comm communicator, int channel)
      : link_(std::move(link)), communicator_(communicator), channel_(channel) {}
  MpiChannel(const MpiChannel&) = delete;
  MpiChannel& operator=(const MpiChannel&) = delete;
  ~MpiChannel() override {
    // MPI may still write to what an operation that was given up was using.
    if (link_->failed()) new Bytes(std::move(piece_));
  }

  Rank rank() const override { return link_->own(); }
  int size() const override { return link_->size(); }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    agree(Kind::kAllReduce, values.size_bytes(), 0, deadline);
    if (size() == 1) return;
    constexpr std::size_t kFloats = kPieceBytes / sizeof(float);
    for (std::size_t begin = 0; begin < values.size(); begin += kFloats) {
      const auto part = values.subspan(begin, std::min(kFloats, values.size() - begin));
      std::memcpy(room(part.size_bytes()), part.data(), part.size_bytes());
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, piece_.data(), static_cast<int>(part.size()), MPI_FLOAT,
                           MPI_SUM, communicator_, &request),
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
    check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, piece_.data(), sizeof length, MPI_BYTE,
                         communicator_, &request),
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
    link_->raise_alarm(farewell(link_->name(rank()), reason));
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
    if (link_->failed()) throw PeerError(link_->failure());
    operation_ = link_->begin(channel_);
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
    check(MPI_Iallreduce(MPI_IN_PLACE, piece_.data(), 6, MPI_INT64_T, MPI_MAX, communicator_,
                         &request),
          "MPI_Iallreduce");
    wait(request, kind, deadline);
    std::memcpy(both, piece_.data(), sizeof both);
    for (int i = 0; i < 3; ++i) {
      if (both[i] + both[i + 3] == 0) continue;
      link_->raise_alarm("ranks on different hosts called different operations, or the same with "
                         "different sizes; " +
                         link_->name(rank()) + " called " + name(kind) + " with " +
                         std::to_string(bytes) + " bytes");
      throw PeerError(link_->failure());
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
      check(MPI_Ibcast(piece_.data(), static_cast<int>(part.size()), MPI_BYTE, root, communicator_,
                       &request),
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
        link_->look_up();
        return false;
      });
    } catch (const PeerError& error) {
      link_->raise_alarm(error.what());
      throw PeerError(link_->failure());
    }
    if (complete) return;
    char waited[32];
    std::snprintf(waited, sizeof waited, "%.1f s", seconds_between(start, Clock::now()));
    std::string text;
    for (int member = 0; member < size(); ++member) {
      if (member == rank() || !link_->missed(member, channel_, operation_)) continue;
      text += (text.empty() ? "" : "; ") + link_->name(member) + " has not come to " + name(kind) +
              " in " + waited + "; last heard " + link_->activities(member);
    }
    if (text.empty()) text = std::string(name(kind)) + " between hosts took longer than " + waited;
    link_->raise_alarm(text);
    throw PeerError(link_->failure());
  }

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
  COHORT_CHECK(number < kMostChannels, "too many channels");
  return std::make_unique<MpiChannel>(shared_from_this(), copy_of(communicator_, deadline), number);
}

}  // namespace

bool wait_for(MPI_Request& request, Deadline deadline, const std::function<bool()>& given_up) {
  constexpr int kTests = 200;
  constexpr int kYields = 2000;
  for (int i = 0;; ++i) {
    int complete = 0;
    check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    if (complete != 0) return true;
    if (i < kTests) continue;
    if (i < kTests + kYields) {
      sched_yield();
    } else {
      // MPI moves data only while it is called.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (i % 16 == 0) {
      if (given_up && given_up()) return false;
      if (Clock::now() >= deadline) return false;
    }
  }
}

std::shared_ptr<MpiLink> MpiLink::create(MPI_Comm communicator, MpiMembers members,
                                         Deadline deadline) {
  return std::make_shared<Link>(communicator, std::move(members), deadline);
}

}  // namespace cohort
