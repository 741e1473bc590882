// The optimizers of optimizers/registry.cpp as tensor operations, for arenas that do not live in
// main memory. A test holds each to its twin there.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "optimizers/optimizer.h"

namespace cohort {

using TensorUpdate = void (*)(const at::Tensor& parameters, const at::Tensor& gradients,
                              const std::vector<at::Tensor>& slots, const OptimizerOptions& options,
                              const UpdateScalars& scalars);

// The twin of optimizer `name`. Throws ConfigError when it has none.
TensorUpdate find_tensor_update(const std::string& name);

}  // namespace cohort
