// Collectives of threads in one process, which read each other's buffers directly.
//
// all_reduce: rank r sums the r-th of P chunks over all ranks, in the order 0, 1, ..., P - 1, into
// a result that the group keeps; then every rank copies the whole result. Each sum is made once, so
// all ranks get the same bits. Cost for P ranks and S bytes: each rank reads S bytes of inputs and
// S bytes of result, writes S/P + S, and meets the others twice; no messages. The group keeps S
// bytes. The other operations copy what they return and meet the others twice, barrier() once.
//
// The deadline holds until all ranks have come. From then on a rank that waits for the others'
// arithmetic waits to its end, whatever the deadline: leaving earlier would let the caller free a
// buffer that another rank is reading. No rank can be missing there.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"

namespace cohort {

// One object for each of `size` ranks. Throws ConfigError unless size >= 1.
std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(int size);

}  // namespace cohort
