#include "compressors/registry.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/text.h"
#include "methods/compressed.h"
#include "methods/shared_settings.h"

namespace cohort {
namespace {

MethodTraits compressed_traits(std::vector<ConfigField> settings) {
  settings.push_back(average_every_field());
  settings.push_back(check_replicas_field());
  return {.own_state = true, .settings = std::move(settings)};
}

bool takes(const RunConfig& config, const char* setting) {
  return compressors().find(config.compressor).traits.takes(setting);
}

bool is_sparse(const RunConfig& config) { return takes(config, "compress-ratio"); }

void check_dgc(const RunConfig& config) {
  refuse_idle(config.compress_warmup_epochs == 0 &&
                  config.compress_warmup_values != RunConfig{}.compress_warmup_values,
              "compress-warmup-values", "--compress-warmup-epochs");
  refuse_idle(config.compress_warmup_epochs > 0 && !is_sparse(config), "compress-warmup-epochs",
              "--compressor top-k or random-k");
  if (!is_sparse(config) && !takes(config, "quantize-bits")) {
    throw ConfigError("--method dgc takes --compressor top-k, random-k or qsgd, not " +
                      config.compressor + "; for signs use --method ef-sign");
  }
}

}  // namespace

MethodTraits ef_sign_traits() { return compressed_traits({}); }

MethodTraits sign_sgd_traits() {
  return compressed_traits({
      {"majority-vote",
       setting_group::kGossip,
       &RunConfig::majority_vote,
       "sign-sgd: the sign of the signs' sum instead of their mean",
       0,
       0,
       {}},
  });
}

MethodTraits dgc_traits() {
  MethodTraits traits = compressed_traits({
      compressor_field(),
      {"mask-momentum",
       setting_group::kGossip,
       &RunConfig::mask_momentum,
       "dgc: momentum of what was sent starts anew",
       0,
       0,
       {}},
      {"clip-tensor",
       setting_group::kGossip,
       &RunConfig::clip_tensor,
       "dgc: longest gradient of a tensor over all workers; 0: no limit",
       0,
       kAnyNumber,
       {}},
      {"compress-warmup-epochs",
       setting_group::kGossip,
       &RunConfig::compress_warmup_epochs,
       "dgc: epochs in which the ratio climbs by --compress-warmup-values",
       0,
       kMaxCount,
       {}},
      {"compress-warmup-values",
       setting_group::kGossip,
       &RunConfig::compress_warmup_values,
       "dgc: the ratios of the warm-up, those up to --compress-ratio",
       0,
       kAnyNumber,
       {}},
  });
  traits.feeds_back = is_sparse;
  traits.check = check_dgc;
  return traits;
}

MethodTraits power_sgd_traits() {
  return compressed_traits({
      {"power-rank",
       setting_group::kGossip,
       &RunConfig::power_rank,
       "power-sgd: rank of the factors",
       1,
       1024,
       {}},
  });
}

}  // namespace cohort
