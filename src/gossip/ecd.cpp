#include "gossip/ecd.h"

#include <algorithm>

#include "core/error.h"
#include "gossip/vectors.h"

namespace cohort {
namespace {

class Ecd final : public GossipAlgorithm, private NeighbourMemory {
 public:
  explicit Ecd(const GossipOptions& options)
      : rank_(options.rank),
        codec_(options.codec),
        x_(static_cast<std::size_t>(options.numel)),
        z_(x_.size()),
        own_(x_.size()) {
    for (const Neighbour& neighbour : options.neighbours) {
      others_.push_back({neighbour, std::vector<float>(x_.size()), true});
    }
  }

  void start(std::span<const float> x) override {
    std::copy(x.begin(), x.end(), x_.begin());
    std::copy(x.begin(), x.end(), own_.begin());
    for (Other& other : others_) std::copy(x.begin(), x.end(), other.estimate.begin());
  }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    // x is x_ - eta m.
    subtract(x, x, x_);
    add_scaled(x, 1.0F, own_);
    for (const Other& other : others_) {
      if (!other.known) continue;
      const auto weight = static_cast<float>(other.neighbour.weight);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += weight * (other.estimate[i] - own_[i]);
    }
    const float half = 0.5F * static_cast<float>(round.number);
    for (std::size_t i = 0; i < x.size(); ++i) z_[i] = (1.0F - half) * x_[i] + half * x[i];
    codec_->encode(z_, rank_, round.number, message);
    move(own_, rank_, round, message);
    std::copy(x.begin(), x.end(), x_.begin());
  }

  void receive(const Neighbour& from, const GossipRound& round,
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
    Neighbour neighbour;
    std::vector<float> estimate;
    bool known = true;  // false: it is lost
  };

  // NeighbourMemory
  void enter(std::span<const float> x, std::span<const float> estimate) override {
    start(x);
    std::copy(estimate.begin(), estimate.end(), own_.begin());
  }
  std::span<const float> own_estimate() const override { return own_; }
  // The lost ones stay forgotten: their weight goes to what the rank itself is believed to be.
  void forget_neighbours() override {
    for (Other& other : others_) other.known = false;
  }
  void take_estimate(const Neighbour& of, std::span<const float> estimate) override {
    for (Other& other : others_) {
      if (other.neighbour.rank != of.rank) continue;
      std::copy(estimate.begin(), estimate.end(), other.estimate.begin());
      other.known = true;
    }
  }

  void move(std::vector<float>& estimate, Rank sender, const GossipRound& round,
            std::span<const std::byte> message) {
    codec_->decode(message, sender, round.number, z_);
    const float share = 2.0F / static_cast<float>(round.number);
    const bool sparse = codec_->sparse();
    for (std::size_t i = 0; i < estimate.size(); ++i) {
      if (sparse && z_[i] == 0.0F) continue;
      estimate[i] = (1.0F - share) * estimate[i] + share * z_[i];
    }
  }

  Rank rank_;
  std::shared_ptr<ModelCodec> codec_;
  std::vector<float> x_;    // the parameters of the last round
  std::vector<float> z_;    // scratch: what is sent, then what was decoded
  std::vector<float> own_;  // what the others believe of this rank
  std::vector<Other> others_;
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_ecd(const GossipOptions& options) {
  return std::make_unique<Ecd>(options);
}

}  // namespace cohort
