// When the model of a run is evaluated on the test set, and what becomes of the result.
#pragma once

#include "engine/training_state.h"

namespace cohort::engine {

class ModelEvaluation {
 public:
  explicit ModelEvaluation(TrainingState& state) : state_(state) {}

  // Whether one is due after the steps up to now, and whether the last one reached the target.
  bool due() const;
  bool target_reached() const;

  // Whether there is anything to evaluate that is not evaluated yet.
  bool pending() const { return state_.parts.test != nullptr && state_.evaluated != state_.done; }
  // Evaluates the model, of gossip the average of all workers' models. All workers call it
  // together, after what came before is recorded. False: a worker was told to stop before its part
  // was done.
  bool run();

 private:
  void note(const Evaluation& result);
  void run_each();

  TrainingState& state_;
};

}  // namespace cohort::engine
