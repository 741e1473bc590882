// A cycle with shortcuts: rank x mixes with x - 1, x + 1 and its inverse modulo n, the y with
// x y = 1 (Lubotzky; Hoory, Linial, Wigderson 2006, section 2.2). Three neighbours at most,
// whatever n, and a spectral gap that does not fall to 0 as n grows.
//
//     weights 1/3 each, the remainder kept: 1/3 by 0, 1 and n - 1, which are their own inverses,
//     and by those whose inverse stands beside them
//
// n is prime (or 1); two ranks mix half and half.
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless the size is 1 or prime.
std::unique_ptr<Topology> make_expander(int size);

}  // namespace cohort::topology
