// Ranks whose numbers differ in one binary digit mix: d = log2 n neighbours, weights 1 / (d + 1),
// as much kept. n is a power of two; spectral gap 2 / (d + 1).
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless the size is a power of two.
std::unique_ptr<Topology> make_hypercube(int size);

}  // namespace cohort::topology
