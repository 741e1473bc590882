// The other workers, as the training loop sees them: questions that all answer together.
//
// All workers ask the same questions in the same order, each from its training thread. Alone, every
// answer is one's own.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "core/activity.h"
#include "core/types.h"

namespace cohort {

class WorkerGroup {
 public:
  WorkerGroup() = default;  // alone
  // `control` and `activity` outlive this object. `patience`: how long to wait for a late worker.
  WorkerGroup(Collectives& control, Activity& activity, std::chrono::nanoseconds patience)
      : control_(&control), activity_(&activity), patience_(patience) {}

  Rank rank() const { return control_ == nullptr ? 0 : control_->rank(); }
  int size() const { return control_ == nullptr ? 1 : control_->size(); }
  bool alone() const { return size() == 1; }
  bool is_first() const { return rank() == 0; }

  // Whether any worker says yes.
  bool any(bool mine) const;

  // What everybody brought, by rank.
  std::vector<std::string> gather(const std::string& mine) const;

  // Replaces the values by their sums over all workers.
  void sum(std::span<float> values) const;

  // Seconds by which each worker's monotonic clock is ahead of the first one's; 0 for clocks that
  // agree within what a message takes, as on one host.
  std::vector<double> clock_offsets() const;

  // Says what this worker is doing now.
  void doing(Step step, Phase phase) const {
    if (activity_ != nullptr) activity_->set(step, phase);
  }

 private:
  Deadline deadline() const { return deadline_in(patience_); }

  Collectives* control_ = nullptr;
  Activity* activity_ = nullptr;
  std::chrono::nanoseconds patience_{};
};

}  // namespace cohort
