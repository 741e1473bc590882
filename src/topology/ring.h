// Every rank mixes with the one to its left and the one to its right:
//
//     0 - 1 - 2 - ... - (n-1) - 0        weights 1/3, 1/3 kept
//
// Two ranks are each other's only neighbour, with weight 1/2; a single rank has none. Any n >= 1.
// The spectral gap falls as 4 pi^2 / (3 n^2).
#pragma once

#include "topology/topology.h"

namespace cohort::topology {

class Ring final : public Topology {
 public:
  // Throws ConfigError unless check_size() accepts the size.
  explicit Ring(int size);

  std::string_view name() const override { return "ring"; }
  int size() const override { return size_; }
  std::vector<Neighbour> neighbours(Rank rank, Step step) const override;

 private:
  int size_;
};

}  // namespace cohort::topology
