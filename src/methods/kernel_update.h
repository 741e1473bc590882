// The optimizers as one kernel each (kernels/arena.h), for arenas in a GPU's memory.
#pragma once

#include <string>

#include "methods/tensor_optimizer.h"

namespace cohort::methods {

// The twin of optimizer `name`; null where it has none, or without the kernels.
TensorUpdate find_kernel_update(const std::string& name);

}  // namespace cohort::methods
