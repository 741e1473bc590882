// Collectives of threads in one process, which read each other's buffers directly.
//
// all_reduce of S bytes over P ranks, each sum in the order 0, 1, ..., P - 1 and made once, so that
// all ranks get the same bits:
//   S > kSmallBytes   Rank r sums the r-th of P chunks over all ranks into its own buffer; then
//                     every rank copies the other chunks from their owners. Each rank reads S bytes
//                     of inputs and (P - 1)/P S of results, writes S, and meets the others three
//                     times. The group keeps nothing.
//   smaller           Every rank copies its input to the group, meets the others once and sums all
//                     inputs itself. The group keeps 2 P kSmallBytes.
// The other operations copy what they return and meet the others twice, barrier() once.
//
// The deadline holds until all ranks have come. From then on a rank that waits for the others'
// arithmetic waits to its end, whatever the deadline: leaving earlier would let the caller free a
// buffer that another rank is reading. No rank can be missing there.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/sizes.h"
#include "core/activity.h"

namespace cohort::collectives {

// What messages call the members of a group that is part of a larger one, by member.
struct MemberNames {
  std::vector<Rank> ranks = {};  // empty: their own numbers
  // What each is doing; empty: unknown. Shared with whoever writes it.
  std::vector<std::shared_ptr<Activity>> activities = {};

  std::string name(int member) const;      // "rank 3"
  std::string activity(int member) const;  // "; it was at step 17, loading data", or ""
};

// One object for each of `size` ranks. Throws ConfigError unless 1 <= size <= 2047.
std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(int size,
                                                                   MemberNames names = {});

// The same, with what each rank is doing, by rank.
std::vector<std::unique_ptr<Collectives>> make_shared_memory_group(
    int size, std::vector<std::shared_ptr<Activity>> activities);

}  // namespace cohort::collectives
