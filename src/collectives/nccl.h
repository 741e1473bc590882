// Collectives of ranks that have a GPU each, over NCCL.
//
// all_reduce sums in the GPU's memory: its span points there, on the rank's own GPU. The ranks meet
// on their hosts first, through a group given to them, and only then start NCCL's kernels. So a
// rank that is missing, has left or brings another length is found out as in that group, with its
// words and its deadline, and no kernel spins on a GPU for a rank that never comes. Everything else
// goes through the host group alone and is about host memory.
//
// Work waits for what its GPU's default stream was given before the call, where the gradients are
// computed, and runs on a stream of its own beside what comes later. all_reduce returns when the
// sum is there. For P ranks and S bytes NCCL's ring sends and receives 2 (P - 1) / P S a rank,
// which traffic() counts; one small all_gather of the host group comes on top. Same sizes and same
// GPUs give the same bits.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"

namespace cohort::collectives {

// GPUs that this process can use; 0 also where there is no driver.
int count_gpus();

// One object for each of `host`, which is a whole group of this process in order of rank. Rank r
// gets GPU r. Throws ConfigError when there are fewer GPUs, RunError when a GPU or NCCL fails, and
// PeerError when they have not found each other at the deadline.
std::vector<std::unique_ptr<Collectives>> make_nccl_group(
    std::vector<std::unique_ptr<Collectives>> host, Deadline deadline);

}  // namespace cohort::collectives
