#include "topology/exponential.h"

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {

std::unique_ptr<Topology> make_exponential(int size) {
  check_size(size);
  std::vector<Edge> edges;
  for (Rank rank = 0; rank < size; ++rank) {
    for (int distance = 1; distance < size; distance *= 2) {
      edges.push_back({rank, (rank + distance) % size});
    }
  }
  return std::make_unique<EdgeGraph>("exponential", size,
                                     metropolis(size, simple(std::move(edges))));
}

}  // namespace cohort::topology
