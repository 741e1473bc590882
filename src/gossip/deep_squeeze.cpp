#include "gossip/deep_squeeze.h"

#include <algorithm>

#include "gossip/vectors.h"

namespace cohort {
namespace {

class DeepSqueeze final : public GossipAlgorithm {
 public:
  explicit DeepSqueeze(const GossipOptions& options)
      : rank_(options.rank),
        stepsize_(static_cast<float>(options.stepsize)),
        codec_(options.codec),
        error_(static_cast<std::size_t>(options.numel)),
        change_(error_.size()) {}

  void start(std::span<const float>) override {
    std::fill(error_.begin(), error_.end(), 0.0F);
    std::fill(change_.begin(), change_.end(), 0.0F);
  }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    add_scaled(error_, 1.0F, x);
    codec_->encode(error_, rank_, round.number, message);
    codec_->decode_add(message, rank_, round.number, -1.0F, error_);
    std::fill(change_.begin(), change_.end(), 0.0F);
    codec_->decode_add(message, rank_, round.number, -static_cast<float>(round.given), change_);
  }

  void receive(const Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    codec_->decode_add(message, from.rank, round.number, static_cast<float>(from.weight), change_);
  }

  void conclude(std::span<float> x) override { add_scaled(x, stepsize_, change_); }

  bool answers_before_gradient() const override { return true; }

  std::vector<State> state() override { return {{"error", error_}}; }

 private:
  Rank rank_;
  float stepsize_;
  std::shared_ptr<ModelCodec> codec_;
  std::vector<float> error_;
  std::vector<float> change_;  // of the round under way
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_deep_squeeze(const GossipOptions& options) {
  return std::make_unique<DeepSqueeze>(options);
}

}  // namespace cohort
