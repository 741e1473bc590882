// What a worker of parameter servers learns about its own gradients, for its records. Written by
// the method, read by the trainer, in the same thread.
#pragma once

#include <cstdint>
#include <utility>

namespace cohort {

class ServerLog {
 public:
  struct Sums {
    std::int64_t pushes = 0;      // answered since the last take()
    std::uint64_t staleness = 0;  // their sum
  };

  void pushed(std::uint64_t staleness) {
    ++sums_.pushes;
    sums_.staleness += staleness;
  }
  void set_updates(std::uint64_t updates) { updates_ = updates; }
  void set_finished() { finished_ = true; }
  void set_traffic(std::uint64_t sent, std::uint64_t received) {
    sent_ = sent;
    received_ = received;
  }

  Sums take() { return std::exchange(sums_, {}); }
  std::uint64_t updates() const { return updates_; }  // made to the model that was read last
  std::uint64_t sent() const { return sent_; }        // bytes to all servers so far
  std::uint64_t received() const { return received_; }
  bool finished() const { return finished_; }  // the last one of the job is made

 private:
  Sums sums_;
  std::uint64_t updates_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  bool finished_ = false;
};

}  // namespace cohort
