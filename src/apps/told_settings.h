// What a server of a dialect was told by its own flags.
//
// It uses none of them: the job's settings come with the workers. But a server that was started
// with another model or rate than the workers is a mistake, and not to be passed over.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "config/run_config.h"
#include "dialects/flag_names.h"

namespace cohort {

// The settings in `config` whose flags were given to `command`, by their native names. Throws
// ConfigError when their values make no sense.
nlohmann::json told_settings(const CLI::App& command, const RunConfig& config,
                             const FlagNames& names);

}  // namespace cohort
