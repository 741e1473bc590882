// The training loop of one worker: batches in, records and checkpoints out.
//
// It owns nothing it works on and reads no configuration: worker.h builds the parts and hands them
// over. Used from one thread; `stop` may be set from any, also by a signal handler.
//
// The trainers of a group run in step: they evaluate, save and stop after the same steps, because
// everything that decides it is equal on all or agreed upon. The first one's records tell of all.
#pragma once

#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/batch_source.h"
#include "engine/group_changes.h"
#include "engine/model_evaluation.h"
#include "engine/run_checkpoints.h"
#include "engine/step_records.h"
#include "engine/trainer_parts.h"
#include "engine/training_state.h"

namespace cohort::engine {

class Trainer {
 public:
  Trainer(const TrainerParts& parts, const TrainerOptions& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Goes on from a checkpoint instead of the beginning. Throws FileError.
  void resume(const storage::LoadedCheckpoint& checkpoint) { checkpoints_.resume(checkpoint); }
  // The same for a worker that gets its tensors from the first one: `engine` is the checkpoint's
  // "engine" member, `source` names it in messages.
  void resume_at(Step step, const nlohmann::json& engine, const std::string& source) {
    checkpoints_.resume_at(step, engine, source);
  }

  // Trains until the plan is fulfilled, the target is reached or `stop` is set; the step under way
  // is finished and a checkpoint written in each case. An evaluation under way is given up.
  TrainingOutcome run(const std::atomic<bool>& stop);

 private:
  void begin();
  void go_to(Step step);
  void train_until_done(const std::atomic<bool>& stop);
  bool goes_on() const;
  void one_step(BatchSource& source);
  void after_step();
  void dump_if_due();
  bool evaluate();  // false: the user stopped it
  void save(RunCheckpoints::Occasion occasion);
  void finish();

  TrainingState state_;
  StepRecords records_;
  ModelEvaluation evaluation_;
  RunCheckpoints checkpoints_;
  GroupChanges group_;
  std::optional<TrainingStep> step_;  // from the first one on
};

}  // namespace cohort::engine
