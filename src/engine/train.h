// The training loop of one worker, in one call: batches in, records and checkpoints out.
#pragma once

#include <atomic>

#include "engine/trainer_parts.h"

namespace cohort::engine {

// Trains until the plan is fulfilled, the target is reached or `stop` is set, from any thread or a
// signal handler. What `parts` names outlives the call.
TrainingOutcome train(const TrainerParts& parts, const TrainerOptions& options,
                      const std::atomic<bool>& stop);

}  // namespace cohort::engine
