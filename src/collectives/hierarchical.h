// Collectives of a group of groups: each group has its own collectives, and the groups' leaders
// (the members with index 0) have others between them.
//
//   all_reduce   inside, each group sums; outside, the leaders sum; inside, the leaders' broadcast
//   all_gather   inside to the leader and to all, outside, inside as a broadcast
//   broadcast    inside the root's group, outside, inside the others
//   barrier      inside, outside, inside
//
// Sums are made in the order of indices inside and of groups outside: the same bits on all ranks
// and in every run with the same groups. When one level fails, this rank leaves the other with the
// same message, so that it reaches everybody.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"

namespace cohort::collectives {

// By group, by index in it: the rank in the whole. Every rank from 0 on stands in it once.
using GroupTable = std::vector<std::vector<Rank>>;

// `inner` are this rank's group, with rank() as the index in it; `outer` those of the leaders, with
// rank() as the group's number. The leader needs `outer`; other members of its process may be given
// the same object, which they use only to leave.
std::unique_ptr<Collectives> make_hierarchical(std::unique_ptr<Collectives> inner,
                                               std::shared_ptr<Collectives> outer,
                                               const GroupTable& groups, Rank rank);

}  // namespace cohort::collectives
