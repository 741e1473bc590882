#include "topology/star.h"

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {

std::unique_ptr<Topology> make_star(int size) {
  check_size(size);
  std::vector<Edge> edges;
  for (Rank rank = 1; rank < size; ++rank) edges.push_back({0, rank});
  return std::make_unique<EdgeGraph>("star", size, metropolis(size, edges));
}

}  // namespace cohort::topology
