// What a worker of parameter servers learns from them about its gradients and the job, for its
// records and checkpoints. Written by the method, read by the trainer, in the same thread; but for
// what a checkpoint tells, which goes the other way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/traffic.h"
#include "core/types.h"

namespace cohort::methods {

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
  // The user has ended a wait for the step that was made last: that step is in no model.
  void set_undone() { undone_ = true; }
  bool take_undone() { return std::exchange(undone_, false); }
  // Of the connections to all servers.
  void set_meter(std::shared_ptr<const TrafficMeter> meter) { meter_ = std::move(meter); }

  // Before the method starts: the run goes on from a checkpoint, whose model had so many gradients
  // of each worker; empty: not known.
  void resume_with(std::vector<std::uint64_t> pushes) { resumed_ = std::move(pushes); }
  const std::optional<std::vector<std::uint64_t>>& resumed() const { return resumed_; }
  // Afterwards: how many steps of this worker are behind the servers' model, wherever its own
  // checkpoint is.
  void set_first_step(Step step) { first_step_ = step; }
  std::optional<Step> first_step() const { return first_step_; }
  // Of the model that was materialized last: gradients of each worker.
  void set_pushes(std::vector<std::uint64_t> pushes) { pushes_ = std::move(pushes); }
  const std::vector<std::uint64_t>& pushes() const { return pushes_; }
  // At the end: what the model lacks of the updates asked for, in words; empty: nothing.
  void set_missing(std::string text) { missing_ = std::move(text); }
  const std::string& missing() const { return missing_; }

  Sums take() { return std::exchange(sums_, {}); }
  std::uint64_t updates() const { return updates_; }  // made to the model that was read last
  Traffic traffic() const { return meter_ ? meter_->read() : Traffic{}; }  // so far
  bool finished() const { return finished_; }  // the last one of the job is made

 private:
  Sums sums_;
  std::uint64_t updates_ = 0;
  std::shared_ptr<const TrafficMeter> meter_;
  bool finished_ = false;
  bool undone_ = false;
  std::optional<std::vector<std::uint64_t>> resumed_;
  std::optional<Step> first_step_;
  std::vector<std::uint64_t> pushes_;
  std::string missing_;
};

}  // namespace cohort::methods
