#include "topology/summary.h"

#include <algorithm>
#include <vector>

#include "topology/edge_graph.h"
#include "topology/mixing.h"

namespace cohort::topology {

TopologySummary summarise(const Topology& topology) {
  TopologySummary summary{.ranks = topology.size(), .period = topology.period()};
  summary.least_degree = topology.size();
  std::vector<Edge> edges;
  double heard = 0;
  for (Step step = 0; step < topology.period(); ++step) {
    for (Rank rank = 0; rank < topology.size(); ++rank) {
      const std::vector<Neighbour> neighbours = topology.neighbours(rank, step);
      for (const Neighbour& neighbour : neighbours) edges.push_back({rank, neighbour.rank});
      const int degree = static_cast<int>(neighbours.size());
      summary.least_degree = std::min(summary.least_degree, degree);
      summary.most_degree = std::max(summary.most_degree, degree);
      heard += degree;
    }
  }
  summary.mean_degree = heard / static_cast<double>(topology.period()) / topology.size();
  summary.edges = static_cast<std::int64_t>(simple(std::move(edges)).size());
  if (topology.size() > kMaxForSpectrum) return summary;
  summary.gap = mixing_gap(topology);
  if (!topology.changes()) summary.laplacian_norm = laplacian_norm(mixing_matrix(topology, 0));
  return summary;
}

}  // namespace cohort::topology
