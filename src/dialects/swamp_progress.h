// What the Swamp experiment's trainers print, in their format:
//
//   Current trainer id: 1, epoch: 0, batch id: 50
//   trainer 1 done epoch 0
#pragma once

#include <cstdio>
#include <memory>

#include "core/types.h"
#include "engine/progress.h"

namespace cohort::dialects {

struct SwampProgressOptions {
  Rank trainer = 0;
  Step log_interval = 50;  // batches between lines; 0: none
  Step steps_per_epoch = 1;
};

// Prints whole lines to `out`, so that several trainers can share it; notes go to `notes`.
std::unique_ptr<engine::Progress> make_swamp_progress(std::FILE* out, std::FILE* notes,
                                                      const SwampProgressOptions& options);

}  // namespace cohort::dialects
