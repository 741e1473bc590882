// The training loop of one worker: batches in, records and checkpoints out.
//
// It owns nothing it works on and reads no configuration: apps/ builds the parts and hands them
// over. Used from one thread; `stop` may be set from any, also by a signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/types.h"
#include "data/sample_order.h"
#include "engine/evaluator.h"
#include "engine/progress.h"
#include "engine/training_step.h"
#include "metrics/metrics_sink.h"
#include "schedules/learning_rate.h"
#include "storage/checkpoint_store.h"

namespace cohort {

struct TrainerParts {
  Model& model;
  Replica& replica;
  UpdateMethod& method;
  const LearningRate& schedule;
  const Dataset& train;
  const Dataset* test = nullptr;  // null: no evaluation
  const SampleOrder& order;       // one batch of it is one step
  MetricsSink& metrics;
  Progress& progress;
  CheckpointStore* checkpoints = nullptr;                  // null: none are written
  std::function<std::uint64_t()> metrics_bytes = nullptr;  // what a checkpoint notes of the log
};

struct TrainerOptions {
  TrainingStepOptions step;
  BatchPlacement placement;
  EvaluatorOptions evaluation;
  Step total_steps = 0;
  Step eval_every_steps = 0;        // 0: at the end only
  Step checkpoint_every_steps = 0;  // 0: at the end only
  Step record_every_steps = 50;
  double target_accuracy = 0;  // stop at this top-1 share of the test set; 0: never
  int loader_threads = 1;
};

enum class StopReason { kFinished, kTargetReached, kInterrupted };

struct TrainingOutcome {
  StopReason reason = StopReason::kFinished;
  Step steps = 0;                  // of the whole run, earlier sittings included
  double seconds = 0;              // likewise
  StepTimes times;                 // of this sitting
  Step steps_now = 0;              // of this sitting
  std::int64_t samples_now = 0;    // trained on in this sitting
  double evaluation_seconds = 0;   // of this sitting
  double checkpoint_seconds = 0;   // of this sitting
  double first_step_seconds = 0;   // from the call of run() to the end of the first step
  std::optional<Evaluation> last;  // on the test set
  std::optional<Evaluation> best;
  Step best_step = 0;
};

class Trainer {
 public:
  Trainer(const TrainerParts& parts, const TrainerOptions& options);

  // Goes on from a checkpoint instead of the beginning. Throws FileError.
  void resume(const LoadedCheckpoint& checkpoint);

  // Trains until the plan is fulfilled, the target is reached or `stop` is set; the step under way
  // is finished and a checkpoint written in each case.
  TrainingOutcome run(const std::atomic<bool>& stop);

 private:
  void train_until_done(const std::atomic<bool>& stop);
  void one_step(Loader& loader, TrainingStep& step);
  void record_steps();
  void evaluate_now();
  enum class Occasion { kOnTheWay, kLast };
  void checkpoint_now(Occasion occasion = Occasion::kOnTheWay);
  void event(const char* name, const std::string& detail);
  double epoch_at(Step step) const;
  double now() const;
  bool target_reached() const;
  nlohmann::json engine_state() const;

  TrainerParts parts_;
  TrainerOptions options_;
  TrainingOutcome outcome_;
  Step done_ = 0;              // steps taken in the whole run
  Step recorded_ = 0;          // covered by records
  Step evaluated_ = -1;        // when the model was last evaluated
  Step saved_ = -1;            // when it was last saved
  bool best_unsaved_ = false;  // the newest evaluation is the best so far
  double earlier_seconds_ = 0;
  Clock::time_point start_;
  ClassificationSums sums_;  // since the last record
  StepTimes times_;
};

}  // namespace cohort
