#include "apps/config_flags.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "storage/file.h"

namespace cohort {
namespace {

constexpr std::uint64_t kConfigLimit = 16 << 20;

std::string help_text(const ConfigField& field) {
  return field.choices.empty() ? field.help : field.help + ": " + join(field.choices, ", ");
}

}  // namespace

ConfigFlags::ConfigFlags(CLI::App& command, std::vector<std::string> only,
                         const RunConfig& defaults) {
  command.add_option("--config", config_file_, "JSON file of settings, or the run.json of a run")
      ->type_name("FILE");
  for (const ConfigField& field : config_fields()) {
    if (!only.empty() && std::find(only.begin(), only.end(), field.name) == only.end()) continue;
    CLI::Option* option =
        command.add_option("--" + field.name, texts_[field.name], help_text(field));
    option->group(field.group);
    if (std::holds_alternative<bool RunConfig::*>(field.member)) {
      // CLI11 would take a default_str() for the value of a flag without one: --nesterov is true.
      option->expected(0, 1)->type_name("BOOL [" + field_text(defaults, field) + "]");
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      options_[field.name] = option;
      continue;
    }
    option->default_str(field_text(defaults, field));
    if (std::holds_alternative<std::string RunConfig::*>(field.member)) {
      option->type_name("NAME");
    } else {
      option->type_name("NUMBER");
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    options_[field.name] = option;
  }
}

RunConfig ConfigFlags::resolve(RunConfig base) const {
  if (!config_file_.empty()) {
    try {
      merge_json(base, read_text_file(config_file_, kConfigLimit), config_file_);
    } catch (const FileError& error) {
      throw ConfigError(std::string("--config: ") + error.what());
    }
  }
  for (const ConfigField& field : config_fields()) {
    const auto option = options_.find(field.name);
    if (option == options_.end() || option->second->count() == 0) continue;
    const bool is_bool = std::holds_alternative<bool RunConfig::*>(field.member);
    const std::string& text = texts_.at(field.name);
    set_field(base, field, is_bool && text.empty() ? "true" : text);
  }
  return base;
}

std::vector<std::string> ConfigFlags::given() const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_) {
    if (option->count() > 0) names.push_back(name);
  }
  return names;
}

}  // namespace cohort
