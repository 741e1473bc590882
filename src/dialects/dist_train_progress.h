// What PaddlePaddle's dist_train.py prints, in its format:
//
//   Pass 0, batch 0, loss 7.0336914, accucacys: [0.0, 0.00390625]
//   ...
//
//   Total examples: 2400, total time: 12.34567, 194.40060 examples/sed
//
//   Pass: 0, Test Accuracy: [0.0125, 0.0625]
//
//   total train time:  123.45678
//
// and in the form of 2019:
//
//   Pass [0/120], batch [30/5005], loss 7.569439, acc1: 0.0125, acc5: 0.0125, avg batch time 0.1720
//   Pass: 0, Test Loss 6.5, test acc1: 0.0125, test acc5: 0.0625
//
// Numbers are written as numpy writes float32.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "core/types.h"
#include "dialects/dist_train.h"
#include "engine/progress.h"

namespace cohort::dialects {

// The shortest decimal that is read back as the same float32: "7.0336914", "0.0", "1e-05".
std::string numpy_text(double value);

// Steps of one pass: all of an epoch, or `iterations` when that is less and not 0.
Step pass_steps(std::int64_t iterations, Step steps_per_epoch);

struct DistTrainProgressOptions {
  PaddleRevision revision = PaddleRevision::kPublished;
  std::int64_t passes = 1;
  Step steps_per_pass = 1;
  std::int64_t skip_batches = 0;  // of each pass, neither timed nor counted
  int ranks = 1;                  // how many make records
};

// Prints to `out`; notes, which the program has not, go to `notes`. Several ranks' records of the
// same step are put together, weighted by samples. `now` gives seconds of a clock. Ask for records
// with dist_train_record_when.
std::unique_ptr<engine::Progress> make_dist_train_progress(std::FILE* out, std::FILE* notes,
                                                           const DistTrainProgressOptions& options,
                                                           std::function<double()> now);

// True after each step that is printed, after the one before it, so that the record of the printed
// one covers no other, where counting begins and where a pass ends.
std::function<bool(Step done)> dist_train_record_when(const DistTrainProgressOptions& options);

// True at the end of each pass from `first_tested` on; never when that is negative.
std::function<bool(Step done)> dist_train_evaluate_when(std::int64_t first_tested,
                                                        Step steps_per_pass);

}  // namespace cohort::dialects
