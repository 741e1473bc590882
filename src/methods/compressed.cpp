#include "methods/compressed.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "methods/error_feedback.h"
#include "methods/flat_arena.h"
#include "methods/group_codec.h"
#include "methods/replica_comparison.h"
#include "methods/statistics.h"

namespace cohort {
namespace {

using MakeCodec = std::unique_ptr<GroupCodec> (*)(const MethodOptions&, const Replica&,
                                                  const std::vector<Range>&);

std::size_t size_of(const std::vector<Range>& tensors) {
  return tensors.empty() ? 0 : static_cast<std::size_t>(tensors.back().end());
}

class Compressed final : public UpdateMethod {
 public:
  Compressed(const MethodOptions& options, MakeCodec make_codec)
      : options_(options), make_codec_(make_codec) {}

  void start(Replica& replica) override {
    if (alone()) return;
    require_same_model(replica, *options_.control, deadline());
    copy_from_first_rank(replica, *options_.control, deadline());
    parameters_.emplace(replica, replica.parameters());
    parameters_->from_device();
    const std::span<const float> x = parameters_->values();
    common_.assign(x.begin(), x.end());
    replica.keep_moves();
    step_.emplace(replica, replica.moves());
    if (options_.average_every > 1) move_.resize(x.size());
    sent_.resize(x.size());
    mean_.resize(x.size());
    codec_ = make_codec_(options_, replica, parameters_->tensors());
  }

  StepKind before_step(Replica&) override { return StepKind::kTrain; }
  void gradients_ready(Replica&, Range) override {}

  void update(Replica& replica, const StepInfo& info) override {
    clip(replica);
    replica.apply_gradients(info.lr);
    if (alone()) return;
    step_->from_device();
    const std::span<const float> step = step_->values();
    for (std::size_t i = 0; i < move_.size(); ++i) move_[i] += step[i];
    if ((info.step + 1) % options_.average_every != 0) return;
    options_.doing(Phase::kExchanging);
    codec_->exchange(move_.empty() ? step : std::span<const float>(move_), info, sent_, mean_);
    std::fill(move_.begin(), move_.end(), 0.0F);
    options_.doing(Phase::kUpdating);
    const std::span<float> x = parameters_->values();
    for (std::size_t i = 0; i < x.size(); ++i) {
      common_[i] -= mean_[i];
      x[i] = common_[i];
    }
    parameters_->to_device();
    mask_momentum(replica);
    if (options_.compare_every > 0 && (info.step + 1) % options_.compare_every == 0) {
      compare_replicas(replica, *options_.control, info.step, deadline());
    }
  }

  void materialize(Replica& replica) override {
    if (!alone()) share_statistics(replica, options_);
  }

  void finish(Replica&, Ending) override {}

  void visit_state(StateVisitor& visitor) override {
    if (!codec_) return;
    visit(visitor, "common", common_);
    if (!move_.empty()) visit(visitor, "move", move_);
    codec_->visit_state(visitor);
  }

 private:
  static void visit(StateVisitor& visitor, const std::string& name, std::vector<float>& values) {
    visitor.tensor(
        "compressed." + name,
        at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
  }

  bool alone() const { return options_.size == 1; }
  Deadline deadline() const { return deadline_in(options_.patience); }

  // The gradients of n ranks are about sqrt(n) times as long as their mean.
  void clip(Replica& replica) const {
    if (options_.clip_tensor <= 0) return;
    const c10::NoGradGuard no_grad;
    const double most = options_.clip_tensor / std::sqrt(static_cast<double>(options_.size));
    for (const Replica::Segment& segment : replica.segments()) {
      const at::Tensor part =
          replica.gradients().narrow(0, segment.range.begin, segment.range.size);
      const double norm = arena_norm(part);
      if (norm > most) part.mul_(most / norm);
    }
  }

  void mask_momentum(Replica& replica) {
    if (!options_.mask_momentum || replica.slots().empty()) return;
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_->tensors().size(); ++i) {
      const Range& range = parameters_->tensors()[i];
      const Replica::Segment& segment = replica.segments()[i];
      const at::Tensor kept =
          at::from_blob(sent_.data() + range.begin, {range.size}, at::kFloat).eq(0);
      replica.slots()
          .front()
          .narrow(0, segment.range.begin, segment.range.size)
          .mul_(kept.to(replica.slots().front().options()));
    }
  }

  MethodOptions options_;
  MakeCodec make_codec_;
  std::optional<FlatArena> parameters_;
  std::optional<FlatArena> step_;  // the latest
  std::vector<float> common_;      // what all ranks have
  std::vector<float> move_;        // of this rank, since then, if in several steps
  std::vector<float> sent_;
  std::vector<float> mean_;
  std::unique_ptr<GroupCodec> codec_;
};

}  // namespace

std::unique_ptr<UpdateMethod> make_ef_sign(const MethodOptions& options) {
  MethodOptions own = options;
  own.mask_momentum = false;
  own.sparsity_warmup = {};
  return std::make_unique<Compressed>(
      own, [](const MethodOptions& o, const Replica&, const std::vector<Range>& tensors) {
        return feed_errors_back(make_mean_codec(o, tensors, "sign"), size_of(tensors));
      });
}

std::unique_ptr<UpdateMethod> make_sign_sgd(const MethodOptions& options) {
  MethodOptions own = options;
  own.mask_momentum = false;
  return std::make_unique<Compressed>(
      own, [](const MethodOptions& o, const Replica&, const std::vector<Range>&) {
        return make_vote_codec(o);
      });
}

std::unique_ptr<UpdateMethod> make_dgc(const MethodOptions& options) {
  MethodOptions own = options;
  const PartTraits& compressor = compressors().find(options.gossip.compressor).traits;
  own.mask_momentum = options.mask_momentum && compressor.takes("compress-ratio");
  return std::make_unique<Compressed>(
      own, [](const MethodOptions& o, const Replica&, const std::vector<Range>& tensors) {
        auto codec = make_mean_codec(o, tensors, o.gossip.compressor);
        if (compressors().find(o.gossip.compressor).traits.takes("quantize-bits")) return codec;
        return feed_errors_back(std::move(codec), size_of(tensors));
      });
}

std::unique_ptr<UpdateMethod> make_power_sgd(const MethodOptions& options) {
  MethodOptions own = options;
  own.mask_momentum = false;
  return std::make_unique<Compressed>(
      own, [](const MethodOptions& o, const Replica& replica, const std::vector<Range>& tensors) {
        return feed_errors_back(make_power_codec(o, replica, tensors), size_of(tensors));
      });
}

}  // namespace cohort
