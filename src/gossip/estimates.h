// What CHOCO and DCD keep: an estimate of this rank that its neighbours have too, and how far
// theirs are from it, weighted and summed. Three vectors with the parameters, whatever the degree.
#pragma once

#include <span>
#include <vector>

#include "gossip/algorithm.h"

namespace cohort {

class Estimates final : public NeighbourMemory {
 public:
  Estimates(Rank rank, std::int64_t numel, std::shared_ptr<ModelCodec> codec);

  void start(std::span<const float> own);

  // sum_j w_ij (hat_j - hat_i) over the neighbours
  std::span<const float> pull() const { return pull_; }

  // Encodes x - hat_i, and moves hat_i by what the neighbours will decode.
  void send(std::span<const float> x, const GossipRound& round, Bytes& message);
  // Moves the estimate of a neighbour.
  void receive(const Neighbour& from, const GossipRound& round, std::span<const std::byte> message);

  void enter(std::span<const float>, std::span<const float> estimate) override { start(estimate); }
  std::span<const float> own_estimate() const override { return own_; }
  void forget_neighbours() override;
  void take_estimate(const Neighbour& of, std::span<const float> estimate) override;

  std::vector<GossipAlgorithm::State> state();

 private:
  Rank rank_;
  std::shared_ptr<ModelCodec> codec_;
  std::vector<float> own_;
  std::vector<float> pull_;
  std::vector<float> difference_;
};

// What the two have in common; they differ in what a round does to the parameters.
class EstimatingAlgorithm : public GossipAlgorithm {
 public:
  explicit EstimatingAlgorithm(const GossipOptions& options)
      : estimates_(options.rank, options.numel, options.codec) {}

  void start(std::span<const float> x) override { estimates_.start(x); }
  void receive(const Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    estimates_.receive(from, round, message);
  }
  void conclude(std::span<float>) override {}
  bool answers_before_gradient() const override { return false; }
  NeighbourMemory* memory() override { return &estimates_; }
  std::vector<State> state() override { return estimates_.state(); }

 protected:
  Estimates& estimates() { return estimates_; }

 private:
  Estimates estimates_;
};

}  // namespace cohort
