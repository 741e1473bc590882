// One optimizer step on one batch: forward, loss, backward, exchange, update, with the time of
// each. The trainer and the step benchmark run the same code.
//
// A GPU is not waited for: it may be at an earlier step while the next ones are given to it.
//
// Used from the thread that trains the replica.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/types.h"
#include "engine/batch_tensors.h"
#include "engine/classification.h"
#include "engine/pause_clock.h"
#include "engine/step_recorder.h"
#include "methods/device_timer.h"
#include "methods/replica.h"
#include "methods/update_method.h"
#include "models/model.h"

namespace cohort::engine {

struct StepTimes {
  double data_seconds = 0;      // waiting for the batch (of a GPU: while it had nothing to do)
  double compute_seconds = 0;   // forward and backward
  double exchange_seconds = 0;  // what the method needed besides the optimizer
  double update_seconds = 0;    // the optimizer

  StepTimes& operator+=(const StepTimes& part) {
    data_seconds += part.data_seconds;
    compute_seconds += part.compute_seconds;
    exchange_seconds += part.exchange_seconds;
    update_seconds += part.update_seconds;
    return *this;
  }
  double total() const {
    return data_seconds + compute_seconds + exchange_seconds + update_seconds;
  }
};

struct TrainingStepOptions {
  Seed seed = 1;
  Rank rank = 0;
  int workers = 1;
  double label_smoothing = 0;
  std::int64_t pass_samples = 0;  // samples in one forward pass; 0: the whole batch
  std::int64_t passes = 1;        // that a whole batch takes
  at::Device device = at::kCPU;
  bool record = false;  // repeat the passes from a recording where the device can
  // Of workers of this process that make this one wait; null: none does.
  const PauseClock* pauses = nullptr;
};

class TrainingStep {
 public:
  TrainingStep(models::Model& model, methods::Replica& replica, methods::UpdateMethod& method,
               const TrainingStepOptions& options);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // One step on this worker's part of a batch, which may be empty; `samples_of_all` is the whole
  // batch's size, `waited` how many seconds the batch was waited for. Adds to `sums`. Throws
  // RunError if the loss is not finite; the parameters are then those before the step. (On a GPU,
  // where reading every loss would slow it down, this is found out by finish().)
  void run(const BatchTensors& batch, std::int64_t samples_of_all, const methods::StepInfo& info,
           ClassificationSums& sums, double waited = 0);

  // Waits until the steps up to now are done and returns their times, of those since the last call.
  // Throws RunError naming the first step whose loss is not finite.
  StepTimes finish();

 private:
  void gradients_of(const BatchTensors& batch, std::int64_t samples_of_all,
                    ClassificationSums& sums);
  at::Tensor passes_of(const BatchTensors& batch, std::int64_t samples_of_all,
                       ClassificationSums* sums);
  void probe(const BatchTensors& batch, ClassificationSums& sums);
  void seed_dropout();
  at::Tensor one_pass(const BatchTensors& batch, double share, ClassificationSums* sums);
  void empty_pass(const BatchTensors& batch);
  void check_loss(double loss, const methods::StepInfo& info) const;

  models::Model& model_;
  methods::Replica& replica_;
  methods::UpdateMethod& method_;
  TrainingStepOptions options_;
  methods::StepInfo info_;                                        // of the step under way
  std::vector<std::pair<methods::StepInfo, at::Tensor>> unread_;  // sums still on the device
  std::unique_ptr<StepRecorder> recorder_;                        // null: every step is given anew
  methods::DeviceTimer idle_;                                     // between the steps
  methods::DeviceTimer computing_;
  methods::DeviceTimer exchanging_;  // and updating
  double waited_ = 0;
  double paused_ = 0;  // while exchanging, by other workers
};

}  // namespace cohort::engine
