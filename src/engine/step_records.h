// What a trainer records of its steps: each worker's losses, times and bytes, and whether they
// learn anything.
#pragma once

#include <vector>

#include "engine/classification.h"
#include "engine/loss_watch.h"
#include "engine/rank_report.h"
#include "engine/training_state.h"

namespace cohort::engine {

class StepRecords {
 public:
  explicit StepRecords(TrainingState& state);

  // Before the first step, all workers together; of one that comes to a group that is under way:
  // alone, on its clock.
  void begin();
  void begin_late();

  // Where a step adds its losses, and who knows its times. `step` outlives the records.
  ClassificationSums& sums() { return sums_; }
  void follow(TrainingStep& step) { step_ = &step; }

  // Whether the steps up to now are due, and records what is not yet. All workers call it together.
  bool due() const;
  void record();
  // After the last step: the bytes since then, and what there is to say of the loss.
  void finish();

  LossWatch& losses() { return watch_; }

 private:
  RankReport own_report();
  void watch_loss(const std::vector<RankReport>& reports);
  void record_ranks(const std::vector<RankReport>& reports);
  void record_traffic(const std::vector<RankReport>& reports);
  // Whose report is the n-th one.
  Rank rank_of(std::size_t report) const;

  TrainingState& state_;
  TrainingStep* step_ = nullptr;
  ClassificationSums sums_;  // since the last record
  LossWatch watch_;
  std::vector<double> clock_offsets_;  // by worker
};

}  // namespace cohort::engine
