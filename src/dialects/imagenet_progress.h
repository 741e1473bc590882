// What PyTorch's ImageNet example prints, in its format:
//
//   => creating model 'resnet50'
//   Epoch: [0][  10/5005]\tTime  0.202 ( 2.525)\tData  0.054 ( 0.192)\tLoss 8.2512e+00 (...)\t...
//   Test: [196/196]\tTime  0.210 ( 0.210)\tLoss 6.9e+00 (6.9e+00)\tAcc@1 ...\tAcc@5 ...
//    * Acc@1 16.016 Acc@5 36.080
//
// Each pair is the value of one batch and, in brackets, the mean over the epoch so far.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/types.h"
#include "engine/progress.h"

namespace cohort::dialects {

// One line of a training epoch. Accuracies are percentages, times are seconds a step.
struct ImagenetBatch {
  double time = 0;
  double data = 0;
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
};

std::string imagenet_epoch_line(std::int64_t epoch, Step index, Step total,
                                const ImagenetBatch& value, const ImagenetBatch& mean);
std::string imagenet_test_line(Step index, Step total, const ImagenetBatch& value,
                               const ImagenetBatch& mean);
std::string imagenet_score_line(double top1_percent, double top5_percent);

struct ImagenetProgressOptions {
  std::int64_t print_freq = 10;           // steps between the lines of an epoch
  int ranks = 1;                          // how many make records
  std::int64_t eval_samples = 1;          // samples that all ranks evaluate at once
  std::vector<std::string> opening = {};  // lines before the first
  std::string resume = {};                // as the user wrote it; empty: a new run
};

// Prints to `out`; notes, which the example has not, go to `notes`. Several ranks' records of the
// same step are put together: means weighted by samples, the slowest rank's time, rank 0's wait
// for data. Ask for records with imagenet_record_when, or the values in front of the brackets are
// means of several batches.
std::unique_ptr<engine::Progress> make_imagenet_progress(std::FILE* out, std::FILE* notes,
                                                         ImagenetProgressOptions options);

// True after each step that is printed, after the one before it, so that the record of the printed
// one covers no other, and at the end of an epoch. The argument counts the steps of the whole run.
std::function<bool(Step done)> imagenet_record_when(std::int64_t print_freq, Step steps_per_epoch);

}  // namespace cohort::dialects
