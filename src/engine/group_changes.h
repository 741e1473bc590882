// How the workers of a run agree when to stop, go on without those lost and with those who return.
#pragma once

#include <atomic>
#include <vector>

#include "core/types.h"
#include "engine/run_checkpoints.h"
#include "engine/step_records.h"
#include "engine/training_state.h"

namespace cohort::engine {

class GroupChanges {
 public:
  GroupChanges(TrainingState& state, StepRecords& records, RunCheckpoints& checkpoints)
      : state_(state), records_(records), checkpoints_(checkpoints) {}

  // Before the first step: when the first agreement is. Or, for one that returns: takes the model
  // and everything else from the leader, while the others welcome it.
  void begin();
  void enter();

  // After every step: all agree whether to stop, where it is time for that, and learn who is lost
  // and who is back.
  void after_step(const std::atomic<bool>& stop);

 private:
  void agree(const std::atomic<bool>& stop);
  Step next_agreement() const;
  void note_lost(const std::vector<Rank>& joined);
  void welcome(const std::vector<Rank>& joined);

  TrainingState& state_;
  StepRecords& records_;
  RunCheckpoints& checkpoints_;
  Step next_ = 0;    // agreement
  Step agreed_ = 0;  // at the last one
  Clock::time_point agreed_at_;
  std::vector<bool> were_present_;  // at the last one, by worker
  bool stop_noted_ = false;         // the user knows that it will take a while
};

}  // namespace cohort::engine
