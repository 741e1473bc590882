// One message a step (Ying, Yuan, Chen, Hu, Pan, Yin 2021: Exponential Graph is Provably Efficient
// for Decentralized Deep Learning): at step t every rank i mixes half and half with
//
//     i + 2^(t mod p)  modulo n,    p = ceil(log2 n)
//
// and is heard by i - 2^(t mod p): directed, doubly stochastic. When n is a power of two, p steps
// in a row reach the exact mean. Any n >= 1; up to two ranks the graph does not change.
#pragma once

#include "topology/topology.h"

namespace cohort::topology {

class OnePeerExponential final : public Topology {
 public:
  // Throws ConfigError unless check_size() accepts the size.
  explicit OnePeerExponential(int size);

  std::string_view name() const override { return "one-peer-exponential"; }
  int size() const override { return size_; }
  std::vector<Neighbour> neighbours(Rank rank, Step step) const override;
  std::vector<Rank> receivers(Rank rank, Step step) const override;
  Step period() const override { return period_; }

 private:
  // How far the peer is at that step; 0 for a single rank.
  int distance(Step step) const;

  int size_;
  Step period_ = 1;
};

}  // namespace cohort::topology
