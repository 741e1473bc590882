// Data parallelism within one process, as PyTorch's DataParallel: every worker computes the
// gradient of its part of the batch, the gradients are added up on rank 0, which alone keeps the
// optimizer's state and steps, and the others copy its parameters.
//
// Cost of a step for P workers and S bytes of parameters: nothing overlaps; S read from each
// worker, S copied to each; the update runs on one worker while the others wait. Memory: P copies
// of parameters and gradients, one of the optimizer's state.
#pragma once

#include <memory>

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_data_parallel(const MethodOptions& options);
MethodTraits data_parallel_traits();

}  // namespace cohort::methods
