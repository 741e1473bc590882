// What CHOCO and DCD keep: an estimate of this rank that its neighbours have too, and how far
// theirs are from it, weighted and summed. Three vectors with the parameters, whatever the degree.
#pragma once

#include <span>
#include <vector>

#include "gossip/algorithm.h"

namespace cohort {

class Estimates {
 public:
  Estimates(Rank rank, std::int64_t numel, std::shared_ptr<ModelCodec> codec);

  void start(std::span<const float> own);

  std::span<const float> own() const { return own_; }
  // sum_j w_ij (hat_j - hat_i) over the neighbours
  std::span<const float> pull() const { return pull_; }

  // Encodes x - hat_i, and moves hat_i by what the neighbours will decode.
  void send(std::span<const float> x, const GossipRound& round, Bytes& message);
  // Moves the estimate of a neighbour.
  void receive(const Neighbour& from, const GossipRound& round, std::span<const std::byte> message);

  void forget_neighbours();
  void take(const Neighbour& of, std::span<const float> estimate);

  std::vector<GossipAlgorithm::State> state();

 private:
  Rank rank_;
  std::shared_ptr<ModelCodec> codec_;
  std::vector<float> own_;
  std::vector<float> pull_;
  std::vector<float> difference_;
};

}  // namespace cohort
