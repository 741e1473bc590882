#include "config/fields.h"
#include "core/error.h"
#include "methods/shared_settings.h"
#include "methods/swamp_method.h"

namespace cohort {
namespace {

std::vector<ConfigField> swamp_fields() {
  std::vector<ConfigField> all = {
      {"swamp-server",
       setting_group::kSwamp,
       &RunConfig::swamp_server,
       "how the best model is chosen; see docs/swamp.md",
       0,
       0,
       {"validated", "latest", "fifo"}},
      {"validation-size",
       setting_group::kSwamp,
       &RunConfig::validation_size,
       "validated: training samples kept apart, on which models are compared",
       10,
       kMaxCount,
       {}},
      {"swamp-hysteresis",
       setting_group::kSwamp,
       &RunConfig::swamp_hysteresis,
       "validated: standard errors by which a model must be better",
       0,
       100,
       {}},
      {"check-samples",
       setting_group::kSwamp,
       &RunConfig::check_samples,
       "fifo, latest: training samples drawn anew for every comparison",
       1,
       kMaxCount,
       {}},
  };
  const std::vector<ConfigField> trials = swamp_trials().fields();
  all.insert(all.begin() + 1, trials.begin(), trials.end());
  for (const ConfigField& field : server_place_fields()) all.push_back(field);
  return all;
}

void check_swamp(const RunConfig& config) {
  const RunConfig usual;
  const bool validated = config.swamp_server == "validated";
  const std::string if_validated = "--swamp-server validated";
  refuse_idle(!validated && config.validation_size != usual.validation_size, "validation-size",
              if_validated);
  refuse_idle(!validated && config.swamp_hysteresis != usual.swamp_hysteresis, "swamp-hysteresis",
              if_validated);
  refuse_idle(validated && config.check_samples != usual.check_samples, "check-samples",
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

const OwnSettings<SwampTrials>& swamp_trials() {
  static const OwnSettings<SwampTrials> table(
      setting_group::kSwamp, {{"free-trial-steps", &SwampTrials::free_trial_steps,
                               "batches that a worker trains on between probes", 1, 1e9},
                              {"pull-probability", &SwampTrials::pull_probability,
                               "of taking the best model after a probe that was not better", 0, 1},
                              {"crossover-probability", &SwampTrials::crossover_probability,
                               "that a pull takes the mean of both models instead", 0, 1}});
  return table;
}

MethodTraits swamp_traits() {
  return {.models = MethodTraits::Models::kCompeting,
          .servers = MethodTraits::Servers::kBestModel,
          .sees_all_data = true,
          .settings = swamp_fields(),
          .check = check_swamp};
}

}  // namespace cohort
