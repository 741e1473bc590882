// Batch normalisation over the samples of all ranks.
//
// Equal to batch normalisation of the concatenated batch (Ioffe and Szegedy, 2015): outputs,
// running statistics and the gradient of the input are those of the whole batch; the gradients of
// scale and shift are this rank's part, to be summed over the ranks like every other parameter's.
//
// Cost for C channels: one sum of 2C + 1 floats in the forward pass and one of 2C in the backward
// pass. Ranks may have different numbers of samples, and none at all: such a rank takes part in
// both sums with zeros, so that the others need not know.
//
// The sums go over (sum of x - m, sum of (x - m)^2, count), where m is the running mean: a plain
// sum that one call does, while (mean, variance) pairs would have to be gathered and combined.
// Taken about 0 instead, the variance would be the small difference of two large numbers wherever
// the mean is large against the deviation; the running mean follows the mean within a few steps. It
// must be the same on all ranks, which it is once it was equal at the start. Each rank's own part
// comes from its own mean and deviations about it, in two passes over the samples.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/parameter_store.h"

namespace cohort::models {

// Everything but the input, by reference; `sum` must live until the backward pass is over. The
// running statistics are updated as torch does, with the unbiased variance of the whole batch.
struct SynchronisedBatchNorm {
  const at::Tensor& weight;
  const at::Tensor& bias;
  at::Tensor& running_mean;
  at::Tensor& running_var;
  double epsilon;
  double momentum;
  const StatisticsSum& sum;
};

// `input` is N x C x H x W on any device, in either memory format, which the output keeps; N may be
// 0. Throws RunError, on all ranks alike, when they have only one value a channel together; the
// running statistics are then unharmed. With no value on any rank they stay as they are. What `sum`
// throws comes through, from the backward pass too. Differentiable once.
at::Tensor synchronised_batch_norm(const at::Tensor& input, const SynchronisedBatchNorm& options);

}  // namespace cohort::models
