// Who mixes with whom, and how much.
//
// Pure arithmetic: no connections, no clocks, the same answer on every rank. Const methods may be
// called from several threads.
//
// The weights of all ranks form a symmetric, doubly stochastic matrix W at every step: w_ij > 0 for
// the neighbours of i, and w_ii, what a rank keeps of its own, is 1 minus the sum of its
// neighbours' weights and not negative. Graphs that change over time may use `step`; the others
// ignore it. Every graph is connected, one that changes over time over enough steps.
#pragma once

#include <string_view>
#include <vector>

#include "core/types.h"

namespace cohort {

struct Neighbour {
  Rank rank = 0;
  double weight = 0;  // share of the neighbour's parameters in the mix

  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

class Topology {
 public:
  virtual ~Topology() = default;

  virtual std::string_view name() const = 0;
  virtual int size() const = 0;

  // Ascending by rank, without `rank` itself. 0 <= rank < size().
  virtual std::vector<Neighbour> neighbours(Rank rank, Step step) const = 0;
};

}  // namespace cohort
