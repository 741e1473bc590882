#include "gossip/d_psgd.h"

#include "core/error.h"

namespace cohort::gossip {
namespace {

class DPsgd final : public GossipAlgorithm {
 public:
  explicit DPsgd(const GossipOptions& options)
      : rank_(options.rank),
        mix_first_(options.mix_first),
        vectors_(vectors_of(options)),
        change_(vectors_->make()) {}

  void start(std::span<const float>) override { vectors_->clear(change_); }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    if (mix_first_) vectors_->combine(x, 1.0F, x, 1.0F, change_);
    vectors_->encode(x, rank_, round.number, message);
    // As the neighbours see it: what is given away and what is got sum to zero over all ranks.
    vectors_->clear(change_);
    vectors_->decode_add(message, rank_, round.number, -static_cast<float>(round.given), change_);
  }

  void receive(const topology::Neighbour& from, const GossipRound& round,
               std::span<const std::byte> message) override {
    vectors_->decode_add(message, from.rank, round.number, static_cast<float>(from.weight),
                         change_);
  }

  void conclude(std::span<float> x) override {
    if (!mix_first_) vectors_->combine(x, 1.0F, x, 1.0F, change_);
  }

  bool answers_before_gradient() const override { return !mix_first_; }

  std::vector<State> state() override { return {{"change", change_}}; }

 private:
  Rank rank_;
  bool mix_first_;
  std::shared_ptr<GossipVectors> vectors_;
  std::span<float> change_;  // sum_j w_ij (x_j - x_i) of the last round
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_d_psgd(const GossipOptions& options) {
  const std::string_view name = options.codec->compressor().name();
  if (name != "none" && name != "fp16" && name != "bf16") {
    throw ConfigError("--method d-psgd sends whole models, to which --compressor " +
                      std::string(name) +
                      " would add its error for ever: use none, fp16 or bf16, or --method choco");
  }
  return std::make_unique<DPsgd>(options);
}

}  // namespace cohort::gossip
