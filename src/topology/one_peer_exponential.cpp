#include "topology/one_peer_exponential.h"

#include <string>

#include "core/error.h"
#include "topology/sizes.h"

namespace cohort::topology {

OnePeerExponential::OnePeerExponential(int size) : size_(size) {
  check_size(size);
  while ((1 << period_) < size) ++period_;
}

int OnePeerExponential::distance(Step step) const { return size_ == 1 ? 0 : 1 << (step % period_); }

std::vector<Neighbour> OnePeerExponential::neighbours(Rank rank, Step step) const {
  COHORT_CHECK(rank >= 0 && rank < size_, "no rank " + std::to_string(rank));
  if (size_ == 1) return {};
  return {{(rank + distance(step)) % size_, 0.5}};
}

std::vector<Rank> OnePeerExponential::receivers(Rank rank, Step step) const {
  COHORT_CHECK(rank >= 0 && rank < size_, "no rank " + std::to_string(rank));
  if (size_ == 1) return {};
  return {(rank + size_ - distance(step)) % size_};
}

}  // namespace cohort::topology
