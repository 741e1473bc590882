// What a trainer is given and what it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/traffic.h"
#include "core/types.h"
#include "data/sample_order.h"
#include "engine/evaluator.h"
#include "engine/progress.h"
#include "engine/training_step.h"
#include "engine/worker_group.h"
#include "methods/lateness.h"
#include "metrics/metrics_sink.h"
#include "schedules/learning_rate.h"

namespace cohort::storage {
class CheckpointStore;  // storage/checkpoint_store.h
class DumpWriter;       // storage/dump_writer.h
}  // namespace cohort::storage

namespace cohort::engine {

class RunDirectory;  // run_directory.h

// Where a worker's records, progress and models go.
struct TrainerOutlets {
  metrics::MetricsSink* metrics = nullptr;          // is there
  Progress* progress = nullptr;                     // likewise
  storage::CheckpointStore* checkpoints = nullptr;  // null: this worker writes none
  RunDirectory* run = nullptr;                      // of the checkpoints; null: of no run
  storage::DumpWriter* dumps = nullptr;             // null: this worker dumps no models
};

struct TrainerParts {
  models::Model& model;
  methods::Replica& replica;
  methods::UpdateMethod& method;
  const schedules::LearningRate& schedule;
  const data::Dataset& train;
  const data::Dataset* test = nullptr;  // null: no evaluation
  const data::SampleOrder& order;       // one batch of it is one step
  TrainerOutlets outlets;
  WorkerGroup group = {};
  methods::ArrivalLog* arrivals = nullptr;   // which the method writes too; may be null
  methods::ServerLog* server_log = nullptr;  // likewise
  PauseClock* pauses = nullptr;              // likewise: of evaluations that others wait for
  // The bytes of this worker so far, but for those of messages between two ranks; and these.
  std::function<Traffic()> traffic = nullptr;
  std::function<Traffic()> message_traffic = nullptr;
  bool has_links = false;                    // traffic() knows what they carried
  transport::Transport* messages = nullptr;  // between workers, of gossip
  // Asked once, when the first worker is lost and this one tells of all from now on: with what.
  std::function<TrainerOutlets()> take_over = nullptr;
};

// After which steps something is done, where that is not every so many. Null: the usual ones.
struct DueSteps {
  std::function<bool(Step done)> record = nullptr;
  std::function<bool(Step done)> evaluate = nullptr;  // also whether it is at the end
};

struct TrainerOptions {
  TrainingStepOptions step;
  BatchPlacement placement;
  EvaluatorOptions evaluation;
  Step total_steps = 0;
  std::int64_t start_epoch = 0;        // the number of the first one
  std::int64_t eval_every_epochs = 0;  // 0: at the end only
  bool save_checkpoints = true;        // the same for all workers, whoever writes
  Step checkpoint_every_steps = 0;     // 0: at the end of every epoch
  Step record_every_steps = 50;
  DueSteps due = {};               // instead of record_every_steps and eval_every_epochs
  Step dump_every_steps = 0;       // of an epoch, from its first on; 0: never
  Step agree_every_steps = 1;      // workers agree whether to stop after a multiple of so many,
  double agree_every_seconds = 0;  // about so often; 0: after each multiple
  bool enters = false;             // comes to a group that is under way
  bool save_each = false;          // a checkpoint holds every worker's state, not the first one's
  bool average_models = false;     // gossip: evaluate and save the average of the workers' models
  bool evaluate_each = false;      // and evaluate each of them
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // with a worker that is late
  std::string split = "test";       // the name of the set to evaluate on
  std::size_t watched_classes = 0;  // of which a model may guess one: LossWatch; 0: not watched
  bool may_drift = false;           // likewise: workers may drift apart
  double target_accuracy = 0;       // stop at this top-1 share of the test set; 0: never
  int loader_threads = 1;
};

enum class StopReason { kFinished, kTargetReached, kInterrupted };

struct TrainingOutcome {
  StopReason reason = StopReason::kFinished;
  Step steps = 0;                  // of the whole run, earlier sittings included
  double epochs = 0;               // behind it after these, however workers changed meanwhile
  double seconds = 0;              // likewise
  StepTimes times;                 // of this sitting, this worker's
  Step steps_now = 0;              // of this sitting
  std::int64_t samples_now = 0;    // all workers trained on in this sitting
  double evaluation_seconds = 0;   // of this sitting
  double checkpoint_seconds = 0;   // of this sitting
  double first_step_seconds = 0;   // from the call of run() to the end of the first step
  std::optional<Evaluation> last;  // on the test set
  std::optional<Evaluation> best;
  Step best_step = 0;
  std::vector<methods::Lateness> late;  // by worker, in this sitting; known to the first one only
  Traffic traffic;                      // of this worker in steps of this sitting
  std::string missing;  // updates that the servers' model lacks, in words; empty: none
  std::string warning;  // that nothing is learned, in words; empty: it is, or not known yet
  bool text = false;    // samples are words, and a loss is the logarithm of a perplexity
};

}  // namespace cohort::engine
