// Replicas that should be equal, compared by hash.
//
// A bit that flipped in one worker's memory, or a race, spreads silently into every model; this
// finds it, and says where. Costs one pass over the parameters and a few bytes a rank while all is
// well.
#pragma once

#include "collectives/collectives.h"
#include "methods/update_method.h"

namespace cohort::methods {

// All ranks call it at the same step. Throws RunError naming the rank that is in the minority and
// the first tensor that differs; on all ranks alike.
void compare_replicas(const Replica& replica, collectives::Collectives& collectives, Step step,
                      Deadline deadline);

// The same where --check-replicas has it after this step.
void compare_when_due(const Replica& replica, const MethodOptions& options, Step step);

// Names, shapes and places of all tensors: what replicas must share to exchange anything. Throws
// ConfigError on all ranks when one has another model.
void require_same_model(const Replica& replica, collectives::Collectives& collectives,
                        Deadline deadline);

// Gives every replica the parameters, buffers, optimizer state and counters of rank 0's.
void copy_from_first_rank(Replica& replica, collectives::Collectives& collectives,
                          Deadline deadline);

}  // namespace cohort::methods
