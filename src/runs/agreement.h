// What the processes of a job must have in common, checked before anything is trained.
#pragma once

#include <string>

#include "collectives/collectives.h"
#include "config/run_config.h"
#include "data/registry.h"

namespace cohort::runs {

// All processes call each of these together; when one differs from the first, all throw
// ConfigError naming it and what differs.
void require_same_settings(collectives::Collectives& processes, const config::RunConfig& config);
// The same for one that comes back: `first` is what settings_text() gave in process 0.
std::string settings_text(const config::RunConfig& config);
void require_same_settings(const std::string& first, int process, const config::RunConfig& config);
void require_same_data(collectives::Collectives& processes, const data::DataSplits& data);
std::string data_facts(const data::DataSplits& data);
void require_same_data(const std::string& first, int process, const data::DataSplits& data);

// What process 0 says; the others' own text is ignored.
std::string from_first_process(collectives::Collectives& processes, const std::string& text);

}  // namespace cohort::runs
