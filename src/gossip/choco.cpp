#include "gossip/choco.h"

#include "gossip/estimates.h"
#include "gossip/vectors.h"

namespace cohort {
namespace {

class Choco final : public GossipAlgorithm {
 public:
  explicit Choco(const GossipOptions& options)
      : stepsize_(static_cast<float>(options.stepsize)),
        estimates_(options.rank, options.numel, options.codec) {}

  void start(std::span<const float> x) override { estimates_.start(x); }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    add_scaled(x, stepsize_, estimates_.pull());
    estimates_.send(x, round, message);
  }

  void receive(const Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    estimates_.receive(from, round, message);
  }

  void conclude(std::span<float>) override {}
  bool answers_before_gradient() const override { return false; }

  bool remembers_neighbours() const override { return true; }
  std::span<const float> own_estimate() const override { return estimates_.own(); }
  void forget_neighbours() override { estimates_.forget_neighbours(); }
  void take_estimate(const Neighbour& of, std::span<const float> estimate) override {
    estimates_.take(of, estimate);
  }

  std::vector<State> state() override { return estimates_.state(); }

 private:
  float stepsize_;
  Estimates estimates_;
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_choco(const GossipOptions& options) {
  return std::make_unique<Choco>(options);
}

}  // namespace cohort
