// The lines with which PaddlePaddle's dist_train.py begins: all flags and all PADDLE_ variables.
#pragma once

#include <string>
#include <vector>

#include "dialects/dist_train.h"

namespace cohort::dialects {

// `flags` with the revision's defaults filled in.
DistTrainFlags with_defaults(DistTrainFlags flags);

// The flags of the revision, and others that were given, sorted by name, then the variables.
std::vector<std::string> dist_train_opening(const DistTrainFlags& flags,
                                            const Variables& variables);

}  // namespace cohort::dialects
