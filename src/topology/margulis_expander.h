// The graph of Margulis (1973), Gabber and Galil (1981): rank x m + y, for x and y modulo m, mixes
// with (x + 2y, y), (x + 2y + 1, y), (x, y + 2x), (x, y + 2x + 1) and with those to whom it is one
// of these. At most eight neighbours, whatever n = m m, and a spectral gap that does not fall to 0.
//
//     weights 1 / max(d_i, d_j), the remainder kept
//
// where d counts the different ranks among the eight, a rank itself included if it is one of them.
// n is a square.
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless the size is a square.
std::unique_ptr<Topology> make_margulis_expander(int size);

}  // namespace cohort::topology
