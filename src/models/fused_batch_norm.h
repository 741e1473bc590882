// Batch normalisation together with the addition of a shortcut and ReLU: on a GPU in as few passes
// over memory as there can be (kernels/batch_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/parameter_store.h"

namespace cohort::models {

struct FusedBatchNorm {
  Parameter& weight;
  Parameter& bias;
  at::Tensor& running_mean;
  at::Tensor& running_var;
  at::Tensor& batches_tracked;
  at::Tensor& counters;  // of the kernels, kept from call to call; undefined before the first
  double epsilon;
  double momentum;
  bool relu;
};

// Whether fused_batch_norm() can be used: on a GPU, with channels innermost, where the gradients of
// scale and shift have their place (Parameter::gradient). Never without the kernels.
bool suits_fused_batch_norm(const at::Tensor& input, const FusedBatchNorm& options);

// In training mode: relu(batch_norm(input) + shortcut), or without ReLU, or without a shortcut
// where that is undefined. Updates the running statistics as torch does. `options` may be gone
// afterwards, but not the parameters. Differentiable once.
at::Tensor fused_batch_norm(const at::Tensor& input, const at::Tensor& shortcut,
                            const FusedBatchNorm& options);

}  // namespace cohort::models
