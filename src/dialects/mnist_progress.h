// What the TensorFlow MNIST example prints, in its format:
//
//   Step: 10950,  Epoch: 20,  Batch: 500 of 550,  Cost: 3.6269,  AvgTime: 33.73ms
//   Step: 11000,  Epoch: 20,  Batch: 550 of 550,  Cost: 3.3322,  AvgTime: 25.31ms
//   Test-Accuracy: 0.28
//   Total Time: 537.31s
//   Final Cost: 3.3322
//   done
//
// Step counts the updates of the shared model, other workers' too. AvgTime is the time since the
// line before over 100, also where fewer batches lie between, as in the example.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "core/types.h"
#include "engine/progress.h"

namespace cohort::dialects {

struct MnistBatch {
  std::int64_t step = 0;   // updates made, this batch's included
  std::int64_t epoch = 0;  // from 1
  Step batch = 0;          // from 1
  Step batches = 0;        // in an epoch
  double cost = 0;
  double average_ms = 0;
};

std::string mnist_batch_line(const MnistBatch& batch);

// Batches between the example's lines.
inline constexpr Step kMnistFrequency = 100;

// Prints to `out`; notes, which the example has not, go to `notes`. `now` gives seconds of a clock;
// Total Time counts from the call of this function.
std::unique_ptr<engine::Progress> make_mnist_progress(std::FILE* out, std::FILE* notes,
                                                      std::function<double()> now);

// True after each step that is printed, and after the one before it, so that the record of the
// printed one covers no other. The argument counts the steps of the whole run.
std::function<bool(Step done)> mnist_record_when(Step steps_per_epoch);

}  // namespace cohort::dialects
