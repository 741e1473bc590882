#include "topology/edge_graph.h"

#include <algorithm>

#include "core/error.h"

namespace cohort::topology {

std::vector<Edge> simple(std::vector<Edge> edges) {
  std::erase_if(edges, [](const Edge& edge) { return edge.a == edge.b; });
  for (Edge& edge : edges) {
    if (edge.a > edge.b) std::swap(edge.a, edge.b);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

std::vector<int> degrees(int size, const std::vector<Edge>& edges) {
  std::vector<int> count(size);
  for (const Edge& edge : edges) {
    ++count[edge.a];
    ++count[edge.b];
  }
  return count;
}

std::vector<WeightedEdge> metropolis(int size, const std::vector<Edge>& edges) {
  const std::vector<int> degree = degrees(size, edges);
  std::vector<WeightedEdge> weighted;
  for (const Edge& edge : edges) {
    weighted.push_back({edge.a, edge.b, 1.0 / (1 + std::max(degree[edge.a], degree[edge.b]))});
  }
  return weighted;
}

std::vector<WeightedEdge> with_weight(double weight, const std::vector<Edge>& edges) {
  std::vector<WeightedEdge> weighted;
  for (const Edge& edge : edges) weighted.push_back({edge.a, edge.b, weight});
  return weighted;
}

Rank unreachable_rank(int size, const std::vector<Edge>& edges) {
  std::vector<std::vector<Rank>> beside(size);
  for (const Edge& edge : edges) {
    beside[edge.a].push_back(edge.b);
    beside[edge.b].push_back(edge.a);
  }
  std::vector<bool> seen(size);
  std::vector<Rank> open = {0};
  seen[0] = true;
  while (!open.empty()) {
    const Rank rank = open.back();
    open.pop_back();
    for (const Rank other : beside[rank]) {
      if (seen[other]) continue;
      seen[other] = true;
      open.push_back(other);
    }
  }
  const auto first = std::find(seen.begin(), seen.end(), false);
  return first == seen.end() ? -1 : static_cast<Rank>(first - seen.begin());
}

EdgeGraph::EdgeGraph(std::string name, int size, const std::vector<WeightedEdge>& edges)
    : name_(std::move(name)), neighbours_(size) {
  for (const WeightedEdge& edge : edges) {
    COHORT_CHECK(edge.a >= 0 && edge.a < edge.b && edge.b < size, "not an edge of a simple graph");
    neighbours_[edge.a].push_back({edge.b, edge.weight});
    neighbours_[edge.b].push_back({edge.a, edge.weight});
  }
  for (std::vector<Neighbour>& row : neighbours_) {
    std::sort(row.begin(), row.end(),
              [](const Neighbour& left, const Neighbour& right) { return left.rank < right.rank; });
  }
}

std::vector<Neighbour> EdgeGraph::neighbours(Rank rank, Step) const {
  COHORT_CHECK(rank >= 0 && rank < size(), "no rank " + std::to_string(rank));
  return neighbours_[rank];
}

}  // namespace cohort::topology
