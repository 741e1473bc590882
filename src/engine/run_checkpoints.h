// What a run saves of itself, and goes on from: the model with the states of its workers, and the
// engine's own counters.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/training_state.h"
#include "engine/worker_states.h"

namespace cohort::engine {

class RunCheckpoints {
 public:
  explicit RunCheckpoints(TrainingState& state) : state_(state) {}

  // Goes on from a checkpoint instead of the beginning. Throws FileError.
  void resume(const storage::LoadedCheckpoint& checkpoint);
  // The same for a worker that gets its tensors from the first one: `engine` is what
  // engine_state() gave, `source` names it in messages.
  void resume_at(Step step, const nlohmann::json& engine, const std::string& source);
  // Before the first step: gives every worker what a checkpoint holds of it. All call it together.
  void share();

  // Saves what is not saved yet. All workers call it together, after what came before is recorded.
  // One that cannot be written is said and passed over, but at the end, where it throws FileError.
  enum class Occasion { kOnTheWay, kLast };
  bool pending() const;
  void save(Occasion occasion);

  nlohmann::json engine_state() const;

 private:
  bool is_best() const { return state_.best_unsaved && state_.outcome.best_step == state_.done; }
  bool save_once(bool best, Occasion occasion);
  bool write(bool best, Occasion occasion);
  std::vector<WorkerState> gather_workers();
  void restore_workers();

  TrainingState& state_;
  std::vector<WorkerState> states_;  // of the workers, on the way to or from a checkpoint
  at::Tensor carried_;               // by recurrent models of all workers: likewise
};

}  // namespace cohort::engine
