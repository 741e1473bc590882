// Without the kernels.
#include "collectives/one_gpu.h"

namespace cohort::collectives {

bool sum_on_gpu(std::vector<std::unique_ptr<Collectives>>&, int) { return false; }

std::shared_ptr<kernels::MessageBoard> make_message_board(int) { return nullptr; }

}  // namespace cohort::collectives
