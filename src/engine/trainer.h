// The training loop of one worker: batches in, records and checkpoints out.
//
// It owns nothing it works on and reads no configuration: worker.h builds the parts and hands them
// over. Used from one thread; `stop` may be set from any, also by a signal handler.
//
// The trainers of a group run in step: they evaluate, save and stop after the same steps, because
// everything that decides it is equal on all or agreed upon. The first one's records tell of all.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/types.h"
#include "data/sample_order.h"
#include "engine/batch_uploader.h"
#include "engine/evaluator.h"
#include "engine/loss_watch.h"
#include "engine/progress.h"
#include "engine/rank_report.h"
#include "engine/traffic_book.h"
#include "engine/training_step.h"
#include "engine/worker_group.h"
#include "engine/worker_states.h"
#include "methods/arrival_log.h"
#include "methods/lateness.h"
#include "metrics/metrics_sink.h"
#include "schedules/learning_rate.h"
#include "storage/checkpoint_store.h"
#include "storage/dump_writer.h"

namespace cohort {

// Where a worker's records, progress and models go.
struct TrainerOutlets {
  MetricsSink* metrics = nullptr;                          // is there
  Progress* progress = nullptr;                            // likewise
  CheckpointStore* checkpoints = nullptr;                  // null: this worker writes none
  std::function<std::uint64_t()> metrics_bytes = nullptr;  // what a checkpoint notes of the log
  std::function<void()> keep_folder = nullptr;             // before something is saved
  DumpWriter* dumps = nullptr;                             // null: this worker dumps no models
};

struct TrainerParts {
  Model& model;
  Replica& replica;
  UpdateMethod& method;
  const LearningRate& schedule;
  const Dataset& train;
  const Dataset* test = nullptr;  // null: no evaluation
  const SampleOrder& order;       // one batch of it is one step
  TrainerOutlets outlets;
  WorkerGroup group = {};
  ArrivalLog* arrivals = nullptr;   // which the method writes too; may be null
  ServerLog* server_log = nullptr;  // likewise
  PauseClock* pauses = nullptr;     // likewise: of evaluations that others wait for
  // The bytes of this worker so far, but for those of messages between two ranks; and these.
  std::function<Traffic()> traffic = nullptr;
  std::function<Traffic()> message_traffic = nullptr;
  bool has_links = false;         // traffic() knows what they carried
  Transport* messages = nullptr;  // between workers, of gossip
  // Asked once, when the first worker is lost and this one tells of all from now on: with what.
  std::function<TrainerOutlets()> take_over = nullptr;
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
  Step dump_every_steps = 0;                        // of an epoch, from its first on; 0: never
  std::function<bool(Step)> record_when = nullptr;  // instead: after which steps
  // Instead of eval_every_epochs, and whether at the end: after which steps.
  std::function<bool(Step)> evaluate_when = nullptr;
  Step agree_every_steps = 1;      // workers agree whether to stop after a multiple of so many,
  double agree_every_seconds = 0;  // about so often; 0: after each multiple
  bool enters = false;             // comes to a group that is under way
  bool save_each = false;          // a checkpoint holds every worker's state, not the first one's
  bool average_models = false;     // gossip: evaluate and save the average of the workers' models
  bool evaluate_each = false;      // and evaluate each of them
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // with a worker that is late
  std::string split = "test";  // the name of the set to evaluate on
  std::size_t watched_classes =
      0;                       // between which it is a loss to guess: LossWatch; 0: not watched
  bool may_drift = false;      // likewise: workers may drift apart
  double target_accuracy = 0;  // stop at this top-1 share of the test set; 0: never
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
  std::vector<Lateness> late;  // by worker, in this sitting; known to the first one only
  Traffic traffic;             // of this worker in steps of this sitting
  std::string missing;         // updates that the servers' model lacks, in words; empty: none
  std::string warning;         // that nothing is learned, in words; empty: it is, or not known yet
  bool text = false;           // samples are words, and a loss is the logarithm of a perplexity
};

class Trainer {
 public:
  Trainer(const TrainerParts& parts, const TrainerOptions& options);

  // Goes on from a checkpoint instead of the beginning. Throws FileError.
  void resume(const LoadedCheckpoint& checkpoint);
  // The same for a worker that gets its tensors from the first one: `engine` is the checkpoint's
  // "engine" member, `source` names it in messages.
  void resume_at(Step step, const nlohmann::json& engine, const std::string& source);

  // Trains until the plan is fulfilled, the target is reached or `stop` is set; the step under way
  // is finished and a checkpoint written in each case. An evaluation under way is given up.
  TrainingOutcome run(const std::atomic<bool>& stop);

 private:
  void train_until_done(const std::atomic<bool>& stop);
  void go_to(Step step);  // where the model in common stands, instead of the own checkpoint
  // Whether this worker records for all. Who has just become the leader takes over the outlets.
  bool leads_now();
  void begin_progress();
  void agree(const std::atomic<bool>& stop);
  void note_lost(const std::vector<Rank>& joined);
  void welcome(const std::vector<Rank>& joined);
  void enter();
  void after_step();
  void one_step(Loader& loader, BatchUploader& upload);
  void materialize();
  void undo_step();
  RankReport own_report();
  void record_steps();
  void watch_loss(const std::vector<RankReport>& reports);
  void record_ranks(const std::vector<RankReport>& reports);
  void record_traffic(const std::vector<RankReport>& reports);
  bool evaluate_now();  // false: the user stopped it
  void evaluate_each();
  enum class Occasion { kOnTheWay, kLast };
  void checkpoint_now(Occasion occasion = Occasion::kOnTheWay);
  bool checkpoint_once(bool best, Occasion occasion);
  bool save(bool best, Occasion occasion);
  std::vector<WorkerState> gather_workers();
  void restore_workers();
  void dump_if_due();
  void event(const char* name, const std::string& detail);
  double epoch_at(Step step) const;
  // Whose report is the n-th one.
  Rank rank_of(std::size_t report) const {
    return parts_.group.alone() ? options_.step.rank : static_cast<Rank>(report);
  }
  double now() const;
  bool target_reached() const;
  bool evaluates_now() const;  // in the course of the run
  bool finished() const;       // others have made the last update of the model in common
  nlohmann::json engine_state() const;

  TrainerParts parts_;
  TrainerOptions options_;
  TrainingOutcome outcome_;
  Step done_ = 0;            // steps taken in the whole run
  Step recorded_ = 0;        // covered by records
  Step evaluated_ = -1;      // when the model was last evaluated
  Step saved_ = -1;          // when it was last saved
  bool stopping_ = false;    // agreed upon
  bool stop_noted_ = false;  // the user knows that it will take a while
  Step next_agreement_ = 0;
  Step agreed_ = 0;  // at the last agreement
  Clock::time_point agreed_at_;
  std::vector<bool> were_present_;  // at the last agreement, by worker
  bool best_unsaved_ = false;       // the newest evaluation is the best so far
  double earlier_seconds_ = 0;
  Clock::time_point start_;
  std::optional<TrainingStep> step_;  // from the first one on
  ClassificationSums sums_;           // since the last record
  StepTimes times_;
  LossWatch watch_;
  TrafficBook traffic_;
  std::vector<WorkerState> states_;  // of the workers, that the first one goes on from
  std::vector<double> clock_offsets_;
  at::Tensor carried_;  // by recurrent models of all workers: on the way to or from a checkpoint
};

}  // namespace cohort
