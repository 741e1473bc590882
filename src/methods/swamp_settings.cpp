#include "config/fields.h"
#include "core/error.h"
#include "methods/shared_settings.h"
#include "methods/swamp_method.h"

namespace cohort::methods {
namespace {

void check_swamp(const config::RunConfig& config) {
  const SwampSettings own = swamp_settings().read(config.own);
  const SwampSettings usual;
  const bool validated = own.server == "validated";
  const std::string if_validated = "--swamp-server validated";
  config::refuse_idle(!validated && own.validation_size != usual.validation_size, "validation-size",
                      if_validated);
  config::refuse_idle(!validated && own.hysteresis != usual.hysteresis, "swamp-hysteresis",
                      if_validated);
  config::refuse_idle(validated && own.check_samples != usual.check_samples, "check-samples",
                      "--swamp-server fifo or latest");
  if (config.partition != "none" && config.partition != "all") {
    throw ConfigError(
        "--method swamp lets every worker go through all training data: leave out "
        "--partition " +
        config.partition);
  }
  if (config.accumulate > 1) {
    throw ConfigError("--method swamp takes one forward pass a step: leave out --accumulate");
  }
}

}  // namespace

const config::OwnSettings<SwampSettings>& swamp_settings() {
  using S = SwampSettings;
  static const config::OwnSettings<S> table(
      config::setting_group::kSwamp,
      {{"swamp-server",
        &S::server,
        "how the best model is chosen; see docs/swamp.md",
        0,
        0,
        {"validated", "latest", "fifo"}},
       {"free-trial-steps", &S::free_trial_steps, "batches that a worker trains on between probes",
        1, 1e9},
       {"pull-probability", &S::pull_probability,
        "of taking the best model after a probe that was not better", 0, 1},
       {"crossover-probability", &S::crossover_probability,
        "that a pull takes the mean of both models instead", 0, 1},
       {"validation-size", &S::validation_size,
        "validated: training samples kept apart, on which models are compared", 10,
        config::kMaxCount},
       {"swamp-hysteresis", &S::hysteresis,
        "validated: standard errors by which a model must be better", 0, 100},
       {"check-samples", &S::check_samples,
        "fifo, latest: training samples drawn anew for every comparison", 1, config::kMaxCount}});
  return table;
}

MethodTraits swamp_traits() {
  std::vector<config::ConfigField> settings = swamp_settings().fields();
  for (const config::ConfigField& field : server_place_fields()) settings.push_back(field);
  return {.models = MethodTraits::Models::kCompeting,
          .servers = MethodTraits::Servers::kBestModel,
          .sees_all_data = true,
          .settings = std::move(settings),
          .check = check_swamp};
}

}  // namespace cohort::methods
