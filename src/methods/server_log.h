// What a worker of parameter servers learns about its own gradients, for its records. Written by
// the method, read by the trainer, in the same thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/traffic.h"

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
  // Of the connections to all servers.
  void set_meter(std::shared_ptr<const TrafficMeter> meter) { meter_ = std::move(meter); }

  Sums take() { return std::exchange(sums_, {}); }
  std::uint64_t updates() const { return updates_; }  // made to the model that was read last
  Traffic traffic() const { return meter_ ? meter_->read() : Traffic{}; }  // so far
  bool finished() const { return finished_; }  // the last one of the job is made

 private:
  Sums sums_;
  std::uint64_t updates_ = 0;
  std::shared_ptr<const TrafficMeter> meter_;
  bool finished_ = false;
};

}  // namespace cohort
