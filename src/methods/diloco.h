// DiLoCo: many local steps of AdamW, then a step of SGD with Nesterov momentum along the averaged
// change. Douillard et al. 2023, "DiLoCo: Distributed low-communication training of language
// models", algorithm 1. With d the averaged change of a round:
//
//   u <- outer-momentum u + d
//   x <- x - outer-lr (d + outer-momentum u)
//
// Each worker keeps the state of its own optimizer. Cost: methods/local_rounds.h.
#pragma once

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_diloco(const MethodOptions& options);
MethodTraits diloco_traits();

}  // namespace cohort::methods
