#include "engine/train.h"

#include "engine/trainer.h"

namespace cohort::engine {

TrainingOutcome train(const TrainerParts& parts, const TrainerOptions& options,
                      const std::atomic<bool>& stop) {
  return Trainer(parts, options).run(stop);
}

}  // namespace cohort::engine
