#include "gossip/ecd.h"

#include "core/error.h"

namespace cohort::gossip {
namespace {

class Ecd final : public GossipAlgorithm, private NeighbourMemory {
 public:
  explicit Ecd(const GossipOptions& options)
      : rank_(options.rank),
        numel_(static_cast<std::size_t>(options.numel)),
        vectors_(vectors_of(options)),
        x_(vectors_->make()),
        z_(vectors_->make()),
        own_(vectors_->make()) {
    for (const topology::Neighbour& neighbour : options.neighbours) {
      others_.push_back({neighbour, vectors_->make(), true});
    }
  }

  void start(std::span<const float> x) override {
    vectors_->copy(x, x_);
    vectors_->copy(x, own_);
    for (Other& other : others_) vectors_->copy(x, other.estimate);
  }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    // x is x_ - eta m.
    vectors_->combine(x, 1.0F, x, -1.0F, x_);
    vectors_->combine(x, 1.0F, x, 1.0F, own_);
    for (const Other& other : others_) {
      if (!other.known) continue;
      const auto weight = static_cast<float>(other.neighbour.weight);
      vectors_->combine(z_, 1.0F, other.estimate, -1.0F, own_);
      vectors_->combine(x, 1.0F, x, weight, z_);
    }
    const float half = 0.5F * static_cast<float>(round.number);
    vectors_->combine(z_, 1.0F - half, x_, half, x);
    vectors_->encode(z_, rank_, round.number, message);
    move(own_, rank_, round, message);
    vectors_->copy(x, x_);
  }

  void receive(const topology::Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    for (Other& other : others_) {
      const bool it = other.neighbour.rank == from.rank && other.known;
      if (it) move(other.estimate, from.rank, round, message);
    }
  }

  void conclude(std::span<float>) override {}
  bool answers_before_gradient() const override { return false; }

  NeighbourMemory* memory() override { return this; }

  std::vector<State> state() override {
    std::vector<State> all = {{"parameters", x_}, {"estimate", own_}};
    for (Other& other : others_) {
      all.push_back({"estimate of " + std::to_string(other.neighbour.rank), other.estimate});
    }
    return all;
  }

 private:
  struct Other {
    topology::Neighbour neighbour;
    std::span<float> estimate;
    bool known = true;  // false: it is lost
  };

  // NeighbourMemory
  void enter(std::span<const float> x, std::span<const float> estimate) override {
    start(x);
    vectors_->copy(estimate, own_);
  }
  std::vector<float> own_estimate() const override {
    std::vector<float> estimate(numel_);
    vectors_->copy(own_, estimate);
    return estimate;
  }
  // The lost ones stay forgotten: their weight goes to what the rank itself is believed to be.
  void forget_neighbours() override {
    for (Other& other : others_) other.known = false;
  }
  void take_estimate(const topology::Neighbour& of, std::span<const float> estimate) override {
    for (Other& other : others_) {
      if (other.neighbour.rank != of.rank) continue;
      vectors_->copy(estimate, other.estimate);
      other.known = true;
    }
  }

  void move(std::span<float> estimate, Rank sender, const GossipRound& round,
            std::span<const std::byte> message) {
    vectors_->decode_blend(message, sender, round.number, 2.0F / static_cast<float>(round.number),
                           estimate);
  }

  Rank rank_;
  std::size_t numel_;
  std::shared_ptr<GossipVectors> vectors_;
  std::span<float> x_;    // the parameters of the last round
  std::span<float> z_;    // scratch: differences, then what is sent
  std::span<float> own_;  // what the others believe of this rank
  std::vector<Other> others_;
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_ecd(const GossipOptions& options) {
  return std::make_unique<Ecd>(options);
}

}  // namespace cohort::gossip
