// Everybody mixes with everybody, each with weight 1/n: one step reaches the mean. Any n >= 1.
#pragma once

#include "topology/topology.h"

namespace cohort::topology {

class Complete final : public Topology {
 public:
  // Throws ConfigError unless check_size() accepts the size.
  explicit Complete(int size);

  std::string_view name() const override { return "complete"; }
  int size() const override { return size_; }
  std::vector<Neighbour> neighbours(Rank rank, Step step) const override;

 private:
  int size_;
};

}  // namespace cohort::topology
