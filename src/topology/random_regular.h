// A connected graph in which each rank has `degree` neighbours, drawn at random from the seed: the
// same on every machine. Weights 1 / (degree + 1), as much kept. Any n >= 1 with an even product of
// n and degree; almost all such graphs have a spectral gap that does not fall with n (Friedman
// 2008).
//
// Drawn by switching pairs of edges, starting at a circle: (a, b), (c, d) become (a, d), (c, b)
// unless that makes a loop or doubles an edge. Ten switches are tried for each edge, and more until
// the graph is connected.
#pragma once

#include <memory>

#include "topology/topology.h"

namespace cohort::topology {

// Degree 0: 3 where that exists, else 4, and no more than size - 1. Throws ConfigError when no
// connected graph has that many ranks and that degree, or when it would be too large to keep.
std::unique_ptr<Topology> make_random_regular(int size, int degree, Seed seed);

}  // namespace cohort::topology
