// The optimizers of optimizers/registry.cpp as tensor operations, for arenas that do not live in
// main memory. A test holds each to its twin there.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "optimizers/optimizer.h"

namespace cohort::methods {

// Stretches of arenas, all of them equally long. `moves` may be undefined: UpdateBlock.
struct Arenas {
  at::Tensor parameters;
  at::Tensor gradients;
  std::vector<at::Tensor> slots;
  at::Tensor moves = {};
};

using TensorUpdate = void (*)(const Arenas& arenas, const optimizers::OptimizerOptions& options,
                              const optimizers::UpdateScalars& scalars);

// The twin of optimizer `name`. Throws ConfigError when it has none.
TensorUpdate find_tensor_update(const std::string& name);

}  // namespace cohort::methods
