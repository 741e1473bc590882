// Rank i mixes with i + 2^k and i - 2^k modulo n, for all 2^k < n: about 2 log2 n neighbours,
// weights 1 / (degree + 1), as much kept. Any n >= 1; the spectral gap falls only as 1 / log n.
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless check_size() accepts the size.
std::unique_ptr<Topology> make_exponential(int size);

}  // namespace cohort::topology
