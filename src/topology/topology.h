// Who mixes with whom, and how much.
//
// Pure arithmetic: no connections, no clocks, the same answer on every rank. Const methods may be
// called from several threads.
//
// The weights of all ranks form a doubly stochastic matrix W at every step: w_ij > 0 for the
// neighbours j of i, and w_ii, what a rank keeps of its own, is 1 minus the sum of its neighbours'
// weights and not negative. Rows and columns sum to 1, so mixing keeps the mean.
//
// A graph that stays the same is symmetric (w_ij = w_ji: whom a rank hears also hears it) and
// connected. One that changes with the step may be directed, and is connected over its period.
#pragma once

#include <string_view>
#include <vector>

#include "core/types.h"

namespace cohort::topology {

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

  // Whom `rank` hears at `step`. Ascending by rank, without `rank` itself. 0 <= rank < size().
  virtual std::vector<Neighbour> neighbours(Rank rank, Step step) const = 0;

  // Whom `rank` sends to at `step`: those that have it as a neighbour. Ascending. The default, the
  // neighbours' ranks, is right for symmetric graphs; directed ones override it.
  virtual std::vector<Rank> receivers(Rank rank, Step step) const;

  // The graph of step t is also that of step t + period(). At least 1.
  virtual Step period() const { return 1; }

  // Whether the graph depends on the step: then neighbours are not there to be remembered.
  bool changes() const { return period() > 1; }
};

}  // namespace cohort::topology
