// Synchronous data parallelism: every rank gets the mean of all ranks' gradients and takes the same
// step, so that replicas stay equal without parameters ever being sent.
//
// Gradients go out in buckets while backward still computes the rest. The first step sends in the
// arena's order and notes in which order buckets really become complete on rank 0; all later steps
// send in that order. Buckets always go out in the same order on all ranks, so nothing is
// negotiated and nothing can interlock. A parameter that a pass did not use counts as zero.
//
// With average_every > 1 it is local SGD instead (Stich 2019): every rank steps alone and the
// parameters and the optimizer's state are averaged every so many steps.
//
// Cost of a step for P ranks and S bytes of parameters: each rank sends and receives
// 2 S (P - 1) / P bytes, hidden behind backward as far as it goes; no memory beyond the gradients
// but what the collectives need. Local SGD: the same times (1 + slots) every average_every steps.
#pragma once

#include <memory>

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_all_reduce(const MethodOptions& options);
MethodTraits all_reduce_traits();

}  // namespace cohort::methods
