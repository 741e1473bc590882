#include "topology/expander.h"

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {
namespace {

// By Fermat: x^(n-2) modulo a prime n.
int inverse(int x, int prime) {
  std::int64_t result = 1;
  std::int64_t power = x;
  for (int exponent = prime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * power % prime;
    power = power * power % prime;
  }
  return static_cast<int>(result);
}

}  // namespace

std::unique_ptr<Topology> make_expander(int size) {
  check_size(size, "expander needs a prime number of workers",
             [](int number) { return number == 1 || is_prime(number); });
  std::vector<Edge> edges;
  for (Rank rank = 0; rank < size; ++rank) {
    edges.push_back({rank, (rank + 1) % size});
    if (rank > 0) edges.push_back({rank, inverse(rank, size)});
  }
  return std::make_unique<EdgeGraph>("expander", size,
                                     with_weight(size == 2 ? 0.5 : 1.0 / 3, simple(edges)));
}

}  // namespace cohort::topology
