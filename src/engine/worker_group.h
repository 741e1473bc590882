// The other workers, as the training loop sees them: questions that all answer together.
//
// All workers ask the same questions in the same order, each from its training thread. Alone, every
// answer is one's own. In a group that goes on without those lost, the answers are of those
// present, whom all know alike.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/elastic.h"
#include "core/activity.h"
#include "core/types.h"

namespace cohort::engine {

class WorkerGroup {
 public:
  WorkerGroup() = default;  // alone
  explicit WorkerGroup(Activity& activity)
      : activity_(&activity) {}  // alone, and says what it does
  // `control` and `activity` outlive this object. `patience`: how long to wait for a late worker.
  // `elastic` is `control` where the group goes on without those lost, null elsewhere.
  WorkerGroup(collectives::Collectives& control, Activity& activity,
              std::chrono::nanoseconds patience, collectives::ElasticCollectives* elastic = nullptr)
      : control_(&control), elastic_(elastic), activity_(&activity), patience_(patience) {}

  Rank rank() const { return control_ == nullptr ? 0 : control_->rank(); }
  int size() const { return control_ == nullptr ? 1 : control_->size(); }
  bool alone() const { return size() == 1; }
  // Who tells of all: rank 0, or who leads those that are left.
  Rank leader() const { return elastic_ == nullptr ? 0 : elastic_->leader(); }
  bool is_first() const { return rank() == leader(); }

  int present() const { return control_ == nullptr ? 1 : control_->present(); }
  bool is_present(Rank rank) const { return elastic_ == nullptr || elastic_->is_present(rank); }
  // Which of those present this worker is, counted from 0.
  int place() const;

  // Whether any worker says yes.
  bool any(bool mine) const;

  // The same, with a number of the first one that all get, and who is back and takes part from now
  // on.
  collectives::ElasticCollectives::Agreement agree(bool mine, std::int64_t number) const;
  // The first one tells those who are back what they have to know; who is back waits for it.
  void welcome(Rank rank, const Bytes& entry) const { elastic_->welcome(rank, entry, deadline()); }
  Bytes enter() const { return elastic_->enter(deadline()); }
  void barrier() const { control_->barrier(deadline()); }

  // What everybody brought, by rank; nothing of those lost.
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

  collectives::Collectives* control_ = nullptr;
  collectives::ElasticCollectives* elastic_ = nullptr;
  Activity* activity_ = nullptr;
  std::chrono::nanoseconds patience_{};
};

}  // namespace cohort::engine
