// A linear layer whose backward pass writes gradients where they are wanted.
//
// Autograd would allocate the weight's gradient and then copy or add it into place: for a large
// layer that moves as many bytes as the matrix product itself.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/parameter_store.h"

namespace cohort::models {

// input * weight^T + bias over the input's last dimension; `bias` may be null. Both parameters'
// `gradient` must be defined, contiguous and of the value's shape. The backward pass stores into
// them, or adds to them where `accumulate` is set at that time, and gives autograd nothing for
// value.grad(). The parameters must live until the backward pass is over. With `accumulate` off, a
// layer may be called only once per backward pass, since each call overwrites. Differentiable
// once.
at::Tensor linear_with_gradient_in_place(const at::Tensor& input, Parameter& weight,
                                         Parameter* bias);

}  // namespace cohort::models
