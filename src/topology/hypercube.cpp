#include "topology/hypercube.h"

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {

std::unique_ptr<Topology> make_hypercube(int size) {
  check_size(size, "hypercube needs a power of two as the number of workers", is_power_of_two);
  std::vector<Edge> edges;
  for (Rank rank = 0; rank < size; ++rank) {
    for (int bit = 1; bit < size; bit *= 2) edges.push_back({rank, rank ^ bit});
  }
  return std::make_unique<EdgeGraph>("hypercube", size, metropolis(size, simple(std::move(edges))));
}

}  // namespace cohort::topology
