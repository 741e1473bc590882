// What an exported model says about itself, so that it can be evaluated without its run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "config/run_config.h"

namespace cohort::apps {

// For the file's metadata: the settings that say which network this is and for which data. No
// path: the file may go to another machine.
std::map<std::string, std::string> export_metadata(const config::RunConfig& config);

// The defaults with those settings; nothing when the file has none, or cannot be read.
std::optional<config::RunConfig> exported_config(const std::filesystem::path& file);

}  // namespace cohort::apps
