// What a server of a dialect was told by its own command line.
//
// It uses none of it: the job's settings come with the workers. But a server that was started with
// another model or rate than the workers is a mistake, and not to be passed over.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/flag_names.h"

namespace cohort::apps {

// By their native names, the settings in `config` whose flags were given to `command`, and those
// that it says something about without: `implied`. Throws ConfigError when their values make no
// sense.
nlohmann::json told_settings(const CLI::App& command, const config::RunConfig& config,
                             const dialects::FlagNames& names,
                             const std::vector<std::string>& implied);

}  // namespace cohort::apps
