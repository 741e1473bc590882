// What is said and remembered of a run's data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/run_config.h"
#include "data/registry.h"

namespace cohort::runs {

// For run.json: where the data were found, how many are trained on and how many of the training
// samples are kept apart, and what they can be recognised by. Of a text's vocabulary that is a
// count and a hash.
nlohmann::json describe_data(const config::RunConfig& config, const data::DataSplits& data);

// That `data` are those of the run at `run`, whose run.json is `document`. Throws ConfigError.
void require_data_of_run(const std::string& run, const nlohmann::json& document,
                         const config::RunConfig& config, const data::DataSplits& data);

}  // namespace cohort::runs
