#include "methods/settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compressors/registry.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/text.h"
#include "methods/shared_settings.h"
#include "methods/update_method.h"
#include "topology/registry.h"

namespace cohort::methods {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool lists(const std::vector<config::ConfigField>& fields, const std::string& setting) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const config::ConfigField& field) { return field.name == setting; });
}

// The names of the entries that list the setting.
template <class AnyRegistry>
std::vector<std::string> entries_with(const AnyRegistry& registry, const std::string& setting) {
  std::vector<std::string> names;
  for (const auto& entry : registry.entries()) {
    if (lists(entry.traits.settings, setting)) names.push_back(entry.name);
  }
  return names;
}

// The settings of parts that are chosen by another setting.
struct PartSettings {
  std::string chosen_by;
  std::vector<std::string> parts;  // that list it; empty: no part does
};

PartSettings parts_with(const std::string& setting) {
  if (auto names = entries_with(compressors::compressors(), setting); !names.empty()) {
    return {"compressor", std::move(names)};
  }
  return {"topology", entries_with(topology::topologies(), setting)};
}

std::string chosen_part(const config::RunConfig& config, const PartSettings& settings) {
  return settings.chosen_by == "compressor" ? config.compressor : config.topology;
}

template <class AnyRegistry>
void add_fields(std::vector<config::ConfigField>& all, const AnyRegistry& registry) {
  for (const auto& entry : registry.entries()) {
    for (const config::ConfigField& field : entry.traits.settings) {
      if (!lists(all, field.name)) all.push_back(field);
    }
  }
}

// "a, b or c"
std::string alternatives(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  return join({names.begin(), names.end() - 1}, ", ") + " or " + names.back();
}

bool is_set(const config::RunConfig& config, const config::ConfigField& field) {
  const std::string text = config::field_text(config, field);
  return text != config::field_text(config::RunConfig{}, field) &&
         (field.off.empty() || text != field.off);
}

// The flag by which the field was set to what it is.
std::string flag_of(const config::RunConfig& config, const config::ConfigField& field) {
  const config::SettingValue value = config::value_of(config, field);
  const bool* on = std::get_if<bool>(&value);
  return on != nullptr && !*on ? "no-" + field.name : field.name;
}

// What would have to be chosen for the setting to do something; empty: it does.
std::string need_of(const config::RunConfig& config, const std::string& setting) {
  const auto users = methods_with(setting);
  if (!users.empty() && !contains(users, config.method)) return "--method " + alternatives(users);
  const PartSettings settings = parts_with(setting);
  if (settings.parts.empty() || contains(settings.parts, chosen_part(config, settings))) return "";
  return "--" + settings.chosen_by + " " + alternatives(settings.parts);
}

void refuse_unused(const config::RunConfig& config, const config::ConfigField& field) {
  if (!is_set(config, field)) return;
  const std::string need = need_of(config, field.name);
  config::refuse_idle(!need.empty(), flag_of(config, field), need);
}

// What the chosen compressor or topology cannot do without.
void require_given(const config::RunConfig& config, const std::string& flag,
                   const std::string& part, const config::PartTraits& traits) {
  if (traits.needs.empty() || !uses(config.method, flag)) return;
  for (const config::ConfigField& field : traits.settings) {
    if (field.name != traits.needs || is_set(config, field)) continue;
    throw ConfigError("--" + flag + " " + part + " needs --" + field.name + ": " +
                      field.help.substr(field.help.find(": ") + 2));
  }
}

void check_parts(const config::RunConfig& config) {
  for (const auto& entry : topology::topologies().entries()) {
    if (entry.name == config.topology) {
      require_given(config, "topology", entry.name, entry.traits);
    }
  }
  if (config.lr_scale_by == "graph" && !uses(config.method, "topology")) {
    throw ConfigError("--lr-scale-by graph counts neighbours, which --method " + config.method +
                      " has not: use world");
  }
}

}  // namespace

const MethodTraits& traits_of(std::string_view method) { return methods().find(method).traits; }

const std::vector<config::ConfigField>& config_fields() {
  static const std::vector<config::ConfigField> table = [] {
    std::vector<config::ConfigField> all = config::common_fields();
    add_fields(all, methods());
    add_fields(all, topology::topologies());
    add_fields(all, compressors::compressors());
    std::stable_sort(all.begin(), all.end(),
                     [](const config::ConfigField& a, const config::ConfigField& b) {
                       return config::place_of_group(a.group) < config::place_of_group(b.group);
                     });
    return all;
  }();
  return table;
}

nlohmann::json to_json(const config::RunConfig& config) {
  return config::to_json(config, config_fields());
}

std::vector<std::string> merge_json(config::RunConfig& config, std::string_view text,
                                    const std::string& source) {
  return config::merge_json(config, text, source, config_fields());
}

std::vector<std::string> methods_with(const std::string& setting) {
  const PartSettings settings = parts_with(setting);
  return entries_with(methods(), settings.parts.empty() ? setting : settings.chosen_by);
}

bool uses(const std::string& method, const std::string& setting) {
  const auto users = methods_with(setting);
  return users.empty() || contains(users, method);
}

std::vector<std::string> unused_settings(const config::RunConfig& config) {
  std::vector<std::string> names;
  for (const config::ConfigField& field : config_fields()) {
    if (!need_of(config, field.name).empty()) names.push_back(field.name);
  }
  return names;
}

std::int64_t steps_between_exchanges(const config::RunConfig& config) {
  return steps_between_exchanges(config.own, traits_of(config.method).average_every);
}

void set_setting(config::RunConfig& config, const std::string& name, config::SettingValue value) {
  for (const config::ConfigField& field : config_fields()) {
    if (field.name == name) return config::set_value(config, field, std::move(value));
  }
  COHORT_CHECK(false, "no setting " + name);
}

config::RunConfig with_method(config::RunConfig config, const std::string& method) {
  config.method = method;
  for (const config::ConfigField& field : config_fields()) {
    if (!uses(method, field.name) && is_set(config, field)) {
      config::set_value(config, field, config::default_of(field));
    }
  }
  return config;
}

Adaptation adapt_to_method(config::RunConfig& config, const IsGiven& is_given) {
  const MethodTraits& traits = traits_of(config.method);
  return traits.adapt ? traits.adapt(config, is_given) : Adaptation{};
}

void check_config(const config::RunConfig& config) {
  const MethodTraits& traits = traits_of(config.method);
  config::RunConfig copy = config;
  for (const config::ConfigField& field : config_fields()) {
    config::set_value(copy, field,
                      config::value_of(config, field));  // dialects set members without asking
    refuse_unused(config, field);
  }
  if (!traits.in_step() && config.batch_norm != config::RunConfig{}.batch_norm) {
    throw ConfigError("--batch-norm " + config.batch_norm +
                      " needs workers that keep in step, which --method " + config.method +
                      "'s do not: leave it out");
  }
  check_parts(config);
  if (traits.check) traits.check(config);
  config::check_common(config);
}

}  // namespace cohort::methods
