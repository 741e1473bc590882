// A grid of m rows and k columns whose borders meet: each rank mixes with those above, below, left
// and right of it. m is the largest divisor of n that is not above its square root; rank r stands
// in row r / k, column r % k.
//
//     weights 1/5, 1/5 kept, when m and k are above 2
//
// With two rows or columns both ways around lead to the same rank, which counts once: weights
// 1 / (degree + 1). A prime n is a ring. Any n >= 1; the spectral gap of a square grid falls as
// 8 pi^2 / (10 n).
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Throws ConfigError unless check_size() accepts the size.
std::unique_ptr<Topology> make_torus(int size);

// k above; size >= 1.
int torus_columns(int size);

// Whether its graph is just a ring: one row, or two of two.
bool torus_is_ring(int size);

}  // namespace cohort::topology
