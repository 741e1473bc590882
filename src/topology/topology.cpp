#include "topology/topology.h"

namespace cohort::topology {

std::vector<Rank> Topology::receivers(Rank rank, Step step) const {
  std::vector<Rank> ranks;
  for (const Neighbour& neighbour : neighbours(rank, step)) ranks.push_back(neighbour.rank);
  return ranks;
}

}  // namespace cohort::topology
