// All settings of a run in one table: the common ones, and those that methods, compressors and
// topologies list in their registries.
//
// A setting that belongs to methods may be given with these alone; otherwise it would do nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "methods/method_traits.h"

namespace cohort::methods {

// In the order of --help: by group.
const std::vector<config::ConfigField>& config_fields();

nlohmann::json to_json(const config::RunConfig& config);
// config/run_config.h, over all settings.
std::vector<std::string> merge_json(config::RunConfig& config, std::string_view text,
                                    const std::string& source);

// For those without a member in RunConfig. Throws ConfigError when the value is not permitted; it
// has the type of the default.
void set_setting(config::RunConfig& config, const std::string& name, config::SettingValue value);

// The methods that list the setting; empty: it is a common one.
std::vector<std::string> methods_with(const std::string& setting);
// Whether the setting does something with the method.
bool uses(const std::string& method, const std::string& setting);

// The settings that do nothing in such a run: those of other methods, and of compressors and
// topologies that are not chosen.
std::vector<std::string> unused_settings(const config::RunConfig& config);

// Steps that workers take alone between exchanges: the user's choice, or the method's.
std::int64_t steps_between_exchanges(const config::RunConfig& config);

// `config` for `method`, with the defaults of what that does not use.
config::RunConfig with_method(config::RunConfig config, const std::string& method);

// What the method chooses where the user left it open: MethodTraits::adapt.
Adaptation adapt_to_method(config::RunConfig& config, const IsGiven& is_given);

// Combinations that make no sense. Throws ConfigError, also for an unknown method.
void check_config(const config::RunConfig& config);

}  // namespace cohort::methods
