#include "apps/config_flags.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "methods/settings.h"
#include "storage/file.h"

namespace cohort::apps {
namespace {

constexpr std::uint64_t kConfigLimit = 16 << 20;

std::string help_text(const config::ConfigField& field) {
  return field.choices.empty() ? field.help : field.help + " {" + join(field.choices, ", ") + "}";
}

// What most runs set; --help begins with them.
bool is_common(const config::ConfigField& field) {
  static const std::set<std::string> names = {
      "model",    "data",    "data-dir", "method",    "workers",  "engine",
      "batch",    "epochs",  "lr",       "optimizer", "momentum", "weight-decay",
      "schedule", "augment", "seed",     "device",    "threads"};
  return names.contains(field.name);
}

}  // namespace

ConfigFlags::ConfigFlags(CLI::App& command, std::vector<std::string> only,
                         const config::RunConfig& defaults)
    : command_(command) {
  command.add_option("--config", config_file_, "JSON file of settings, or the run.json of a run")
      ->type_name("FILE");
  // --help shows groups in the order in which their first flag comes.
  for (const bool common : {true, false}) {
    for (const config::ConfigField& field : methods::config_fields()) {
      if (!only.empty() && std::find(only.begin(), only.end(), field.name) == only.end()) continue;
      if (is_common(field) == common) add(field, defaults);
    }
  }
}

void ConfigFlags::add(const config::ConfigField& field, const config::RunConfig& defaults) {
  CLI::Option* option =
      command_.add_option("--" + field.name, texts_[field.name], help_text(field));
  option->group(is_common(field) ? "Common settings" : field.group);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  options_[field.name] = option;
  const config::SettingValue usual = config::value_of(defaults, field);
  if (const auto* on = std::get_if<bool>(&usual)) {
    // CLI11 would take a default_str() for the value of a flag without one: --nesterov is true.
    option->expected(0, 1)->type_name("BOOL [" + config::field_text(defaults, field) + "]");
    if (*on) add_opposite(field, *option);
    return;
  }
  option->default_str(config::field_text(defaults, field));
  option->type_name(std::holds_alternative<std::string>(usual) ? "NAME" : "NUMBER");
}

void ConfigFlags::add_opposite(const config::ConfigField& field, CLI::Option& option) {
  const std::string name = "--no-" + field.name;
  // One line of --help speaks of both.
  option.description(option.get_description() + "; " + name + " switches it off");
  opposites_[field.name] = command_.add_flag(name)->group("");
}

bool ConfigFlags::is_given(const std::string& name) const {
  const auto opposite = opposites_.find(name);
  return options_.at(name)->count() > 0 ||
         (opposite != opposites_.end() && opposite->second->count() > 0);
}

std::string ConfigFlags::text_of(const config::ConfigField& field) const {
  const std::string& text = texts_.at(field.name);
  if (!std::holds_alternative<bool>(config::default_of(field))) return text;
  const auto opposite = opposites_.find(field.name);
  if (opposite != opposites_.end()) {
    for (const std::string& value : opposite->second->results()) {
      if (value == "true") continue;
      throw ConfigError("--no-" + field.name + " takes no value: write --" + field.name +
                        " true or --" + field.name + " false");
    }
    const CLI::Option* last = nullptr;
    for (const CLI::Option* each : command_.parse_order()) {
      if (each == opposite->second || each == options_.at(field.name)) last = each;
    }
    if (last == opposite->second) return "false";
  }
  return text.empty() ? "true" : text;
}

std::vector<std::string> ConfigFlags::merge_file(config::RunConfig& config) const {
  if (config_file_.empty()) return {};
  try {
    return methods::merge_json(config, storage::read_text_file(config_file_, kConfigLimit),
                               config_file_);
  } catch (const FileError& error) {
    throw ConfigError(std::string("--config: ") + error.what());
  }
}

std::set<std::string> ConfigFlags::given_anywhere() const {
  config::RunConfig scratch;
  const std::vector<std::string> in_file = merge_file(scratch);
  const std::vector<std::string> on_line = given();
  std::set<std::string> names(in_file.begin(), in_file.end());
  names.insert(on_line.begin(), on_line.end());
  return names;
}

config::RunConfig ConfigFlags::resolve(config::RunConfig base) const {
  merge_file(base);
  for (const config::ConfigField& field : methods::config_fields()) {
    if (!options_.contains(field.name) || !is_given(field.name)) continue;
    config::set_field(base, field, text_of(field));
  }
  return base;
}

std::vector<std::string> ConfigFlags::given() const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_) {
    if (is_given(name)) names.push_back(name);
  }
  return names;
}

}  // namespace cohort::apps
