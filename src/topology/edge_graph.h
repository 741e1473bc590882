// Graphs given by their edges: what most topologies are made of.
//
//     std::unique_ptr<Topology> make_star(int size) {
//       std::vector<Edge> edges;
//       for (Rank rank = 1; rank < size; ++rank) edges.push_back({0, rank});
//       return std::make_unique<EdgeGraph>("star", size, metropolis(size, simple(edges)));
//     }
#pragma once

#include <string>
#include <vector>

#include "topology/topology.h"

namespace cohort::topology {

// Between two ranks, in both directions.
struct Edge {
  Rank a = 0;
  Rank b = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): its own 0
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

struct WeightedEdge {
  Rank a = 0;
  Rank b = 0;
  double weight = 0;  // w_ab = w_ba
};

// The edges of a simple graph: each once, a < b, in order, none from a rank to itself.
std::vector<Edge> simple(std::vector<Edge> edges);

// How many edges each rank has.
std::vector<int> degrees(int size, const std::vector<Edge>& edges);

// w_ij = 1 / (1 + max(deg_i, deg_j)) (Metropolis and Hastings; Xiao and Boyd 2004): doubly
// stochastic on any simple graph, and every rank keeps some of its own. Ranks with equal degrees
// get 1 / (1 + deg) each, themselves included.
std::vector<WeightedEdge> metropolis(int size, const std::vector<Edge>& edges);

// Each edge with the same weight.
std::vector<WeightedEdge> with_weight(double weight, const std::vector<Edge>& edges);

// The smallest rank that cannot be reached from rank 0, or -1 when all can.
Rank unreachable_rank(int size, const std::vector<Edge>& edges);

// A graph that does not change. Immutable.
class EdgeGraph final : public Topology {
 public:
  // The edges are those of a simple() graph between ranks below `size`.
  EdgeGraph(std::string name, int size, const std::vector<WeightedEdge>& edges);

  std::string_view name() const override { return name_; }
  int size() const override { return static_cast<int>(neighbours_.size()); }
  std::vector<Neighbour> neighbours(Rank rank, Step step) const override;

 private:
  std::string name_;
  std::vector<std::vector<Neighbour>> neighbours_;
};

}  // namespace cohort::topology
