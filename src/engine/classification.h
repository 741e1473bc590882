// Loss and accuracy of a classifier.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/model.h"

namespace cohort::engine {

// Mean cross-entropy over the batch, for which `logits` has a row for each of the labels, whatever
// their shape; kNoLabel does not count. Plus the weighted losses of the model's auxiliary outputs
// when it is training.
at::Tensor classification_loss(const models::Model& model, const at::Tensor& logits,
                               const at::Tensor& labels, double label_smoothing);

// What ClassificationSums holds of one batch, as four float64 on the device that computed them:
// loss times samples, top1, top5, samples. Does not wait for it.
at::Tensor sums_on_device(const at::Tensor& loss, const at::Tensor& logits,
                          const at::Tensor& labels);

// Sums over samples (of text: over words with a label). They stay on the device until they are
// asked for, so that adding to them does not wait for it.
class ClassificationSums {
 public:
  struct Values {
    double loss = 0;  // sum of each batch's mean loss times its samples
    std::int64_t top1 = 0;
    std::int64_t top5 = 0;
    std::int64_t samples = 0;
  };

  // `loss` is the batch's mean, `labels` as in classification_loss(). A logit that is not a number
  // never counts as right; of equal logits the first class wins, as in argmax.
  void add(const at::Tensor& loss, const at::Tensor& logits, const at::Tensor& labels);

  void add(const at::Tensor& sums);  // of sums_on_device()

  Values values() const;
  void reset() { *this = {}; }

 private:
  Values host_;
  at::Tensor
      device_;  // loss, top1, top5, samples of what was added on a device; undefined if nothing was
};

}  // namespace cohort::engine
