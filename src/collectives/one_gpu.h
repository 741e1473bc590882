// Sums in the memory of one GPU, of ranks of one process that share it.
//
// all_reduce of S bytes that lie there, over P ranks: they meet in a group of theirs and show each
// other their vectors; each sums one of P chunks over all of them, in the order of the ranks, and
// writes it to all, so that all get the same bits; they meet again. Nothing passes through main
// memory, the GPU reads and writes P S bytes. Vectors in main memory, and all other operations, are
// the group's.
//
// What is summed must be computed when all_reduce is called: it works on a stream of its own, and
// returns when the sum is there. As in the group, the deadline holds until all ranks have come.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"

namespace cohort::kernels {
class MessageBoard;
}

namespace cohort::collectives {

// Lets the members of a whole group of this process, in order of rank, sum in the memory of `gpu`.
// False, and nothing is changed, without the kernels and with more ranks than they take.
bool sum_on_gpu(std::vector<std::unique_ptr<Collectives>>& group, int gpu);

// Where so many ranks that share a GPU leave messages for each other; null without the kernels.
std::shared_ptr<kernels::MessageBoard> make_message_board(int ranks);

}  // namespace cohort::collectives
