#include "topology/margulis_expander.h"

#include <algorithm>

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {

std::unique_ptr<Topology> make_margulis_expander(int size) {
  check_size(size, "margulis-expander needs a square number of workers", is_square);
  const int m = square_root(size);
  std::vector<Edge> all;
  std::vector<bool> has_loop(size);
  for (int x = 0; x < m; ++x) {
    for (int y = 0; y < m; ++y) {
      const Rank rank = x * m + y;
      for (const int shift : {0, 1}) {
        for (const Rank other :
             {(x + 2 * y + shift) % m * m + y, x * m + (y + 2 * x + shift) % m}) {
          all.push_back({rank, other});
          if (other == rank) has_loop[rank] = true;
        }
      }
    }
  }
  const std::vector<Edge> edges = simple(std::move(all));
  std::vector<int> degree = degrees(size, edges);
  for (Rank rank = 0; rank < size; ++rank) degree[rank] += has_loop[rank] ? 1 : 0;
  std::vector<WeightedEdge> weighted;
  for (const Edge& edge : edges) {
    weighted.push_back({edge.a, edge.b, 1.0 / std::max(degree[edge.a], degree[edge.b])});
  }
  return std::make_unique<EdgeGraph>("margulis-expander", size, weighted);
}

}  // namespace cohort::topology
