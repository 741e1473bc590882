#include "topology/ring.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "topology/sizes.h"

namespace cohort::topology {

Ring::Ring(int size) : size_(size) { check_size(size); }

std::vector<Neighbour> Ring::neighbours(Rank rank, Step) const {
  COHORT_CHECK(rank >= 0 && rank < size_, "no rank " + std::to_string(rank));
  if (size_ == 1) return {};
  if (size_ == 2) return {{1 - rank, 0.5}};
  const auto [low, high] = std::minmax({(rank + size_ - 1) % size_, (rank + 1) % size_});
  return {{low, 1.0 / 3}, {high, 1.0 / 3}};
}

}  // namespace cohort::topology
