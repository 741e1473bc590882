#include "topology/complete.h"

#include <string>

#include "core/error.h"
#include "topology/sizes.h"

namespace cohort::topology {

Complete::Complete(int size) : size_(size) { check_size(size); }

std::vector<Neighbour> Complete::neighbours(Rank rank, Step) const {
  COHORT_CHECK(rank >= 0 && rank < size_, "no rank " + std::to_string(rank));
  std::vector<Neighbour> others;
  for (Rank other = 0; other < size_; ++other) {
    if (other != rank) others.push_back({other, 1.0 / size_});
  }
  return others;
}

}  // namespace cohort::topology
