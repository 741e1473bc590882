// Without the kernels.
#include "collectives/one_gpu.h"

namespace cohort {

bool sum_on_gpu(std::vector<std::unique_ptr<Collectives>>&, int) { return false; }

}  // namespace cohort
