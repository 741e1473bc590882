// What the members of an MPI group tell each other beside their operations: what their ranks are
// doing, every quarter of a second, and why the group has failed.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/mpi_collectives.h"
#include "core/activity.h"

namespace cohort::collectives {

// May be used from several threads. Once failed it makes no more calls of MPI.
class MpiHeartbeat {
 public:
  static constexpr int kMaxChannels = 8;

  // Called by all members; `communicator` is for this object alone.
  MpiHeartbeat(MPI_Comm communicator, MpiMembers members);
  MpiHeartbeat(const MpiHeartbeat&) = delete;
  MpiHeartbeat& operator=(const MpiHeartbeat&) = delete;
  ~MpiHeartbeat() { stop(); }

  int own() const { return own_; }
  int size() const { return size_; }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string failure() const;  // "" while all is well

  // The first reason counts.
  void fail(const std::string& reason);

  // Fails and tells all others.
  void raise_alarm(const std::string& reason);

  // Looks whether somebody raised the alarm or this host has failed. Throws PeerError if so.
  void look_up();

  // Another operation of a channel; returns how many there have been.
  std::uint64_t begin(int channel) { return ++begun_[channel]; }

  // Whether a member was last heard of before it came to an operation.
  bool missed(int member, int channel, std::uint64_t operation) const;

  std::string name(int member) const;        // "ranks 2 and 3 on node5"
  std::string activities(int member) const;  // as last heard

  // Says and hears nothing any more.
  void stop();

 private:
  using Begun = std::array<std::uint64_t, kMaxChannels>;
  struct Heard {
    Begun begun{};
    std::vector<Activity> activities;  // of the member's ranks, as last told
    std::chrono::milliseconds silent{0};
    bool anything = false;
  };

  void take_alarm();
  void listen();
  void tell(int to, Bytes& buffer, MPI_Request& request);
  void hear(std::chrono::milliseconds passed);
  bool hear_one(int from, Heard& heard);
  void part(std::vector<Bytes>& outgoing, std::vector<MPI_Request>& requests) const;

  const MPI_Comm communicator_;
  const MpiMembers members_;
  int own_ = 0;
  int size_ = 1;
  std::array<std::atomic<std::uint64_t>, kMaxChannels> begun_{};  // operations, by channel
  std::atomic<bool> failed_ = false;
  std::mutex probing_;
  mutable std::mutex mutex_;  // guards the next four
  std::string failure_;
  std::vector<Heard> heard_;  // by member
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread listener_;
};

}  // namespace cohort::collectives
