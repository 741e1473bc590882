#include "topology/random_regular.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/random.h"
#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {
namespace {

constexpr std::int64_t kMaxEdges = 4'000'000;

int checked_degree(int size, int degree) {
  if (degree == 0) return std::min(size - 1, size % 2 == 0 ? 3 : 4);
  const std::string of = " of " + std::to_string(size) + " workers";
  const int least = std::min(size - 1, 2);
  if (degree < least || degree > size - 1) {
    throw ConfigError("random-regular" + of + " needs a degree from " + std::to_string(least) +
                      " to " + std::to_string(size - 1) + ", not " + std::to_string(degree));
  }
  if (size % 2 == 1 && degree % 2 == 1) {
    throw ConfigError("random-regular" + of + ", an odd number, needs an even degree: " +
                      (degree - 1 < least ? "" : std::to_string(degree - 1) + " or ") +
                      std::to_string(degree + 1) + ", not " + std::to_string(degree));
  }
  if (std::int64_t{size} * degree / 2 > kMaxEdges) {
    throw ConfigError("random-regular" + of + " with degree " + std::to_string(degree) +
                      " has too many edges; the most is " + std::to_string(kMaxEdges));
  }
  return degree;
}

// Neighbours on a circle of the ranks in that order: those at distance 1, 2, ..., and across it for
// an odd degree.
std::vector<Edge> circle(const std::vector<Rank>& order, int degree) {
  const int size = static_cast<int>(order.size());
  std::vector<Edge> edges;
  for (int i = 0; i < size; ++i) {
    for (int distance = 1; distance <= degree / 2; ++distance) {
      edges.push_back({order[i], order[(i + distance) % size]});
    }
    if (degree % 2 == 1 && i < size / 2) edges.push_back({order[i], order[i + size / 2]});
  }
  return edges;
}

class Switching {
 public:
  Switching(int size, std::vector<Edge> edges) : edges_(std::move(edges)), beside_(size) {
    for (const Edge& edge : edges_) {
      beside_[edge.a].push_back(edge.b);
      beside_[edge.b].push_back(edge.a);
    }
  }

  void attempt(RandomStream& random) {
    Edge& first = edges_[random.below(edges_.size())];
    Edge& second = edges_[random.below(edges_.size())];
    if (random.below(2) == 1) std::swap(second.a, second.b);
    const auto [a, b] = first;
    const auto [c, d] = second;
    if (a == c || a == d || b == c || b == d || joined(a, d) || joined(c, b)) return;
    replace(a, b, d);
    replace(b, a, c);
    replace(c, d, b);
    replace(d, c, a);
    first = {a, d};
    second = {c, b};
  }

  const std::vector<Edge>& edges() const { return edges_; }

 private:
  bool joined(Rank a, Rank b) const {
    return std::find(beside_[a].begin(), beside_[a].end(), b) != beside_[a].end();
  }
  void replace(Rank of, Rank old, Rank now) {
    *std::find(beside_[of].begin(), beside_[of].end(), old) = now;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<Rank>> beside_;
};

}  // namespace

std::unique_ptr<Topology> make_random_regular(int size, int wanted, Seed seed) {
  check_size(size);
  const int degree = checked_degree(size, wanted);
  RandomStream random(seed, "topology",
                      {static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(degree)});
  std::vector<Rank> order(size);
  std::iota(order.begin(), order.end(), 0);
  shuffle(std::span(order), random);
  Switching graph(size, circle(order, degree));
  // Switched graphs of degree 2 are mostly several circles; the shuffled one is a fair draw.
  if (degree > 2) {
    do {
      for (std::size_t i = 0; i < 10 * graph.edges().size(); ++i) graph.attempt(random);
    } while (unreachable_rank(size, graph.edges()) >= 0);
  }
  return std::make_unique<EdgeGraph>("random-regular", size,
                                     metropolis(size, simple(graph.edges())));
}

}  // namespace cohort::topology
