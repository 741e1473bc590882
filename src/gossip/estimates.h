// What CHOCO and DCD keep: an estimate of this rank that its neighbours have too, and how far
// theirs are from it, weighted and summed. Three vectors with the parameters, whatever the degree.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gossip/algorithm.h"

namespace cohort::gossip {

class Estimates final : public NeighbourMemory {
 public:
  Estimates(const GossipOptions& options, std::shared_ptr<GossipVectors> vectors);

  void start(std::span<const float> own);
  void start_from_zero();

  // sum_j w_ij (hat_j - hat_i) over the neighbours
  std::span<const float> pull() const { return pull_; }
  std::span<const float> own() const { return own_; }

  // Encodes x - hat_i, and moves hat_i by what the neighbours will decode.
  void send(std::span<const float> x, const GossipRound& round, Bytes& message);
  // Moves the estimate of a neighbour.
  void receive(const topology::Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message);

  void enter(std::span<const float>, std::span<const float> estimate) override { start(estimate); }
  std::vector<float> own_estimate() const override;
  void forget_neighbours() override;
  void take_estimate(const topology::Neighbour& of, std::span<const float> estimate) override;

  std::vector<GossipAlgorithm::State> state();

 private:
  Rank rank_;
  std::size_t numel_;
  std::shared_ptr<GossipVectors> vectors_;
  std::span<float> own_;
  std::span<float> pull_;
  std::span<float> difference_;  // scratch
};

// What the two have in common; they differ in what a round does to the parameters.
class EstimatingAlgorithm : public GossipAlgorithm {
 public:
  explicit EstimatingAlgorithm(const GossipOptions& options)
      : vectors_(vectors_of(options)), estimates_(options, vectors_) {}

  void start(std::span<const float> x) override { estimates_.start(x); }
  void receive(const topology::Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    estimates_.receive(from, round, message);
  }
  void conclude(std::span<float>) override {}
  bool answers_before_gradient() const override { return false; }
  NeighbourMemory* memory() override { return &estimates_; }
  std::vector<State> state() override { return estimates_.state(); }

 protected:
  GossipVectors& vectors() { return *vectors_; }
  Estimates& estimates() { return estimates_; }

 private:
  std::shared_ptr<GossipVectors> vectors_;
  Estimates estimates_;
};

}  // namespace cohort::gossip
