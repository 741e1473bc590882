// A table of vectors whose backward pass writes gradients where they are wanted.
//
// Autograd would allocate a gradient as large as the table and add all of it into place, though
// only the rows of the words in the batch are not zero.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/parameter_store.h"

namespace cohort::models {

// The rows of `table` that `indices` (int64, any shape) name. table.gradient must be defined and
// contiguous; the backward pass adds to it where `accumulate` is set at that time, otherwise
// replaces it, and gives autograd nothing for value.grad(). So a linear layer that uses the same
// parameter in place (linear_function.h) must come later in the forward pass. The parameter must
// live until the backward pass is over. Differentiable once.
at::Tensor embedding_with_gradient_in_place(const at::Tensor& indices, Parameter& table);

}  // namespace cohort::models
