// SlowMo: local steps, then a momentum step over the averaged change.
// Wang, Tantia, Ballas, Rabbat 2020, "SlowMo: Improving communication-efficient distributed SGD
// with slow momentum", algorithm 1. With d the averaged change of a round and lr the rate of its
// steps:
//
//   u <- slow-momentum u + d / lr
//   x <- x - slow-lr lr u
//
// With slow-momentum 0 and slow-lr 1 it is local SGD. Cost: methods/local_rounds.h.
#pragma once

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_slow_mo(const MethodOptions& options);
MethodTraits slow_mo_traits();

}  // namespace cohort::methods
