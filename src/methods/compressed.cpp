#include "methods/compressed.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "compressors/registry.h"
#include "config/fields.h"
#include "config/own_settings.h"
#include "core/error.h"
#include "methods/error_feedback.h"
#include "methods/flat_arena.h"
#include "methods/group_codec.h"
#include "methods/replica_comparison.h"
#include "methods/shared_settings.h"
#include "methods/statistics.h"

namespace cohort::methods {
namespace {

struct SignSgdSettings {
  bool majority_vote = false;
};

const config::OwnSettings<SignSgdSettings>& sign_sgd_settings() {
  static const config::OwnSettings<SignSgdSettings> table(
      config::setting_group::kGossip,
      {{"majority-vote", &SignSgdSettings::majority_vote,
        "sign-sgd: the sign of the signs' sum instead of their mean"}});
  return table;
}

struct DgcSettings {
  bool mask_momentum = true;
  double clip_tensor = 0;
  double warmup_epochs = 0;
  std::vector<double> warmup_values = {0.75, 0.9375, 0.984375, 0.996, 0.999};
};

const config::OwnSettings<DgcSettings>& dgc_settings() {
  static const config::OwnSettings<DgcSettings> table(
      config::setting_group::kGossip,
      {{"mask-momentum", &DgcSettings::mask_momentum, "dgc: momentum of what was sent starts anew"},
       {"clip-tensor", &DgcSettings::clip_tensor,
        "dgc: longest gradient of a tensor over all workers; 0: no limit", 0, config::kAnyNumber},
       {"compress-warmup-epochs", &DgcSettings::warmup_epochs,
        "dgc: epochs in which the ratio climbs by --compress-warmup-values", 0, config::kMaxCount},
       {"compress-warmup-values", &DgcSettings::warmup_values,
        "dgc: the ratios of the warm-up, those up to --compress-ratio", 0, config::kAnyNumber}});
  return table;
}

struct PowerSgdSettings {
  std::int64_t rank = 4;
};

const config::OwnSettings<PowerSgdSettings>& power_sgd_settings() {
  static const config::OwnSettings<PowerSgdSettings> table(
      config::setting_group::kGossip,
      {{"power-rank", &PowerSgdSettings::rank, "power-sgd: rank of the factors", 1, 1024}});
  return table;
}

MethodTraits compressed_traits(std::vector<config::ConfigField> settings) {
  settings.push_back(average_every_field());
  settings.push_back(check_replicas_field());
  return {.own_state = true, .settings = std::move(settings)};
}

bool takes(const config::RunConfig& config, const char* setting) {
  return compressors::compressors().find(config.compressor).traits.takes(setting);
}

bool is_sparse(const config::RunConfig& config) { return takes(config, "compress-ratio"); }

void check_dgc(const config::RunConfig& config) {
  const DgcSettings own = dgc_settings().read(config.own);
  config::refuse_idle(own.warmup_epochs == 0 && own.warmup_values != DgcSettings{}.warmup_values,
                      "compress-warmup-values", "--compress-warmup-epochs");
  config::refuse_idle(own.warmup_epochs > 0 && !is_sparse(config), "compress-warmup-epochs",
                      "--compressor top-k or random-k");
  if (!is_sparse(config) && !takes(config, "quantize-bits")) {
    throw ConfigError("--method dgc takes --compressor top-k, random-k or qsgd, not " +
                      config.compressor + "; for signs use --method ef-sign");
  }
}

using MakeCodec =
    std::function<std::unique_ptr<GroupCodec>(const Replica&, const std::vector<Range>&)>;

// Of dgc alone.
struct Corrections {
  bool mask_momentum = false;  // of what was sent starts anew
  double clip_tensor = 0;      // longest gradient of a tensor over all ranks; 0: no limit
};

std::size_t size_of(const std::vector<Range>& tensors) {
  return tensors.empty() ? 0 : static_cast<std::size_t>(tensors.back().end());
}

class Compressed final : public UpdateMethod {
 public:
  Compressed(const MethodOptions& options, MakeCodec make_codec, Corrections corrections = {})
      : options_(options),
        make_codec_(std::move(make_codec)),
        corrections_(corrections),
        every_(steps_between_exchanges(options.own)) {}

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
    if (every_ > 1) move_.resize(x.size());
    sent_.resize(x.size());
    mean_.resize(x.size());
    codec_ = make_codec_(replica, parameters_->tensors());
  }

  void update(Replica& replica, const StepInfo& info) override {
    clip(replica);
    replica.apply_gradients(info.lr);
    if (alone()) return;
    step_->from_device();
    const std::span<const float> step = step_->values();
    for (std::size_t i = 0; i < move_.size(); ++i) move_[i] += step[i];
    if ((info.step + 1) % every_ != 0) return;
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
    compare_when_due(replica, options_, info.step);
  }

  void materialize(Replica& replica) override {
    if (!alone()) share_statistics(replica, options_);
  }

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
    if (corrections_.clip_tensor <= 0) return;
    const c10::NoGradGuard no_grad;
    const double most = corrections_.clip_tensor / std::sqrt(static_cast<double>(options_.size));
    for (const Replica::Segment& segment : replica.segments()) {
      const at::Tensor part =
          replica.gradients().narrow(0, segment.range.begin, segment.range.size);
      const double norm = arena_norm(part);
      if (norm > most) part.mul_(most / norm);
    }
  }

  void mask_momentum(Replica& replica) {
    if (!corrections_.mask_momentum || replica.slots().empty()) return;
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
  const Corrections corrections_;
  const Step every_;  // steps between exchanges
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
  return std::make_unique<Compressed>(
      options, [options](const Replica&, const std::vector<Range>& tensors) {
        return feed_errors_back(make_mean_codec(options, tensors, "sign"), size_of(tensors));
      });
}

std::unique_ptr<UpdateMethod> make_sign_sgd(const MethodOptions& options) {
  return std::make_unique<Compressed>(options, [options](const Replica&, const auto&) {
    return make_vote_codec(options, sign_sgd_settings().read(options.own).majority_vote);
  });
}

std::unique_ptr<UpdateMethod> make_dgc(const MethodOptions& options) {
  const DgcSettings own = dgc_settings().read(options.own);
  const config::PartTraits& compressor =
      compressors::compressors().find(options.gossip.compressor).traits;
  const bool forgets = compressor.takes("quantize-bits");
  return std::make_unique<Compressed>(
      options,
      [options, own, forgets](const Replica&, const std::vector<Range>& tensors) {
        auto codec = make_mean_codec(options, tensors, options.gossip.compressor,
                                     {own.warmup_epochs, own.warmup_values});
        return forgets ? std::move(codec) : feed_errors_back(std::move(codec), size_of(tensors));
      },
      Corrections{own.mask_momentum && compressor.takes("compress-ratio"), own.clip_tensor});
}

std::unique_ptr<UpdateMethod> make_power_sgd(const MethodOptions& options) {
  return std::make_unique<Compressed>(options, [options](const Replica& replica,
                                                         const std::vector<Range>& tensors) {
    const std::int64_t rank = power_sgd_settings().read(options.own).rank;
    return feed_errors_back(make_power_codec(options, rank, replica, tensors), size_of(tensors));
  });
}

MethodTraits ef_sign_traits() { return compressed_traits({}); }
MethodTraits sign_sgd_traits() { return compressed_traits(sign_sgd_settings().fields()); }
MethodTraits power_sgd_traits() { return compressed_traits(power_sgd_settings().fields()); }

MethodTraits dgc_traits() {
  std::vector<config::ConfigField> settings = dgc_settings().fields();
  settings.insert(settings.begin(), compressor_field());
  MethodTraits traits = compressed_traits(std::move(settings));
  traits.feeds_back = is_sparse;
  traits.check = check_dgc;
  return traits;
}

}  // namespace cohort::methods
