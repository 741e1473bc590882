// Rank 0 mixes with everybody, the others only with it: weights 1/n, the remainder kept. Any n >=
// 1; spectral gap 1/n (1 for two). Rank 0 carries all messages.
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless check_size() accepts the size.
std::unique_ptr<Topology> make_star(int size);

}  // namespace cohort::topology
