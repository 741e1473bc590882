#include "gossip/vectors.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/simd.h"
#include "gossip/arithmetic.h"

namespace cohort::gossip {
namespace {

COHORT_SIMD_CLONES void add_both(std::span<float> out, float a, std::span<const float> x, float b,
                                 std::span<const float> y) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a * x[i] + b * y[i];
}

class HostVectors final : public GossipVectors {
 public:
  explicit HostVectors(std::shared_ptr<compressors::ModelCodec> codec) : codec_(std::move(codec)) {}

  std::span<float> make() override { return all_.emplace_back(codec_->numel()); }

  void clear(std::span<float> y) override { std::fill(y.begin(), y.end(), 0.0F); }

  void copy(std::span<const float> from, std::span<float> to) override {
    std::copy(from.begin(), from.end(), to.begin());
  }

  void combine(std::span<float> out, float a, std::span<const float> x, float b,
               std::span<const float> y) override {
    // The compiler makes the best of what it knows to be one vector.
    if (a == 1 && out.data() == x.data()) return add_scaled(out, b, y);
    if (a == 1 && b == -1) return subtract(out, x, y);
    add_both(out, a, x, b, y);
  }

  void encode(std::span<const float> x, Rank sender, std::uint64_t sequence,
              Bytes& message) override {
    codec_->encode(x, sender, sequence, message);
  }

  void decode_add(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                  float weight, std::span<float> y) override {
    codec_->decode_add(message, sender, sequence, weight, y);
  }

  void decode_blend(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                    float share, std::span<float> y) override {
    decoded_.resize(y.size());
    codec_->decode(message, sender, sequence, decoded_);
    const bool sparse = codec_->sparse();
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (sparse && decoded_[i] == 0.0F) continue;
      y[i] = (1.0F - share) * y[i] + share * decoded_[i];
    }
  }

 private:
  std::shared_ptr<compressors::ModelCodec> codec_;
  std::deque<std::vector<float>> all_;  // they stay where they are
  std::vector<float> decoded_;          // scratch
};

}  // namespace

std::unique_ptr<GossipVectors> make_host_vectors(std::shared_ptr<compressors::ModelCodec> codec) {
  return std::make_unique<HostVectors>(std::move(codec));
}

}  // namespace cohort::gossip
