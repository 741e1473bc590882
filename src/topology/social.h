// Who of 18 women of Natchez went to which of 14 social events (Davis, Gardner, Gardner: Deep
// South, 1941): a real, uneven network of 32 nodes and 89 edges, with 2 to 14 neighbours each.
// Ranks 0 to 17 are the women, 18 to 31 the events, in the order of the book.
//
//     weights 1 / max(deg_i, deg_j), the remainder kept; spectral gap 0.0903
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless the size is 32.
std::unique_ptr<Topology> make_social(int size);

}  // namespace cohort::topology
