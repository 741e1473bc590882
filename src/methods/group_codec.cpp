#include "methods/group_codec.h"

#include <algorithm>
#include <cmath>

#include "compressors/model_codec.h"
#include "compressors/registry.h"
#include "compressors/votes.h"
#include "core/error.h"

namespace cohort::methods {
namespace {

class MeanCodec : public GroupCodec {
 public:
  MeanCodec(const MethodOptions& options, std::vector<Range> tensors, std::string compressor,
            SparsityWarmup warmup)
      : options_(options),
        tensors_(std::move(tensors)),
        compressor_(std::move(compressor)),
        warmup_(std::move(warmup)) {}

  void exchange(std::span<const float> move, const StepInfo& info, std::span<float> sent,
                std::span<float> mean) override {
    use_ratio(ratio_at(info));
    const auto sequence = static_cast<std::uint64_t>(info.step) + 1;
    codec_->encode(move, options_.rank, sequence, wire_);
    codec_->decode(wire_, options_.rank, sequence, sent);
    const auto all = options_.gradients->all_gather(wire_, deadline_in(options_.patience));
    std::fill(mean.begin(), mean.end(), 0.0F);
    const float share = 1.0F / static_cast<float>(options_.size);
    for (Rank rank = 0; rank < options_.size; ++rank) {
      codec_->decode_add(all[static_cast<std::size_t>(rank)], rank, sequence, share, mean);
    }
  }

  void visit_state(StateVisitor&) override {}

 private:
  // Of the warm-up values those below the final one, evenly over its epochs (Lin et al. 2018).
  double ratio_at(const StepInfo& info) const {
    const double last = options_.gossip.compression.ratio;
    if (warmup_.epochs <= 0 || info.epoch >= warmup_.epochs) return last;
    std::vector<double> values;
    for (const double value : warmup_.ratios) {
      if (value <= last) values.push_back(value);
    }
    if (values.empty()) return last;
    const auto place =
        static_cast<std::size_t>(info.epoch / warmup_.epochs * static_cast<double>(values.size()));
    return values[std::min(place, values.size() - 1)];
  }

  void use_ratio(double ratio) {
    if (codec_ && ratio == ratio_) return;
    compressors::CompressorOptions compression = options_.gossip.compression;
    compression.ratio = ratio;
    codec_ = std::make_unique<compressors::ModelCodec>(
        compressors::compressors().make(compressor_, compression), tensors_);
    ratio_ = ratio;
  }

  MethodOptions options_;
  std::vector<Range> tensors_;
  std::string compressor_;
  const SparsityWarmup warmup_;
  std::unique_ptr<compressors::ModelCodec> codec_;
  double ratio_ = -1;
  Bytes wire_;
};

class VoteCodec final : public GroupCodec {
 public:
  VoteCodec(const MethodOptions& options, bool majority) : options_(options), majority_(majority) {}

  void exchange(std::span<const float> move, const StepInfo& info, std::span<float> sent,
                std::span<float> mean) override {
    compressors::pack_votes(move, wire_);
    std::fill(sent.begin(), sent.end(), 0.0F);
    compressors::add_votes(wire_, sent);
    const auto all = options_.gradients->all_gather(wire_, deadline_in(options_.patience));
    std::fill(mean.begin(), mean.end(), 0.0F);
    for (Rank rank = 0; rank < options_.size; ++rank) {
      try {
        compressors::add_votes(all[static_cast<std::size_t>(rank)], mean);
      } catch (const PeerError& error) {
        throw PeerError("rank " + std::to_string(rank) + ": " + error.what());
      }
    }
    const auto lr = static_cast<float>(info.lr);
    const float share = lr / static_cast<float>(options_.size);
    for (float& value : mean) value = majority_ ? lr * sign(value) : share * value;
  }

  void visit_state(StateVisitor&) override {}

 private:
  static float sign(float value) { return value > 0 ? 1.0F : value < 0 ? -1.0F : 0.0F; }

  MethodOptions options_;
  const bool majority_;
  Bytes wire_;
};

}  // namespace

std::unique_ptr<GroupCodec> make_mean_codec(const MethodOptions& options,
                                            const std::vector<Range>& tensors,
                                            const std::string& compressor,
                                            const SparsityWarmup& warmup) {
  return std::make_unique<MeanCodec>(options, tensors, compressor, warmup);
}

std::unique_ptr<GroupCodec> make_vote_codec(const MethodOptions& options, bool majority) {
  return std::make_unique<VoteCodec>(options, majority);
}

}  // namespace cohort::methods
