#include "gossip/deep_squeeze.h"

namespace cohort::gossip {
namespace {

class DeepSqueeze final : public GossipAlgorithm {
 public:
  explicit DeepSqueeze(const GossipOptions& options)
      : rank_(options.rank),
        stepsize_(static_cast<float>(options.stepsize)),
        vectors_(vectors_of(options)),
        error_(vectors_->make()),
        change_(vectors_->make()) {}

  void start(std::span<const float>) override {
    vectors_->clear(error_);
    vectors_->clear(change_);
  }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    vectors_->combine(error_, 1.0F, error_, 1.0F, x);
    vectors_->encode(error_, rank_, round.number, message);
    vectors_->decode_add(message, rank_, round.number, -1.0F, error_);
    vectors_->clear(change_);
    vectors_->decode_add(message, rank_, round.number, -static_cast<float>(round.given), change_);
  }

  void receive(const topology::Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    vectors_->decode_add(message, from.rank, round.number, static_cast<float>(from.weight),
                         change_);
  }

  void conclude(std::span<float> x) override { vectors_->combine(x, 1.0F, x, stepsize_, change_); }

  bool answers_before_gradient() const override { return true; }

  std::vector<State> state() override { return {{"error", error_}}; }

 private:
  Rank rank_;
  float stepsize_;
  std::shared_ptr<GossipVectors> vectors_;
  std::span<float> error_;
  std::span<float> change_;  // of the round under way
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_deep_squeeze(const GossipOptions& options) {
  return std::make_unique<DeepSqueeze>(options);
}

}  // namespace cohort::gossip
