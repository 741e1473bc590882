#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "collectives/registry.h"
#include "compressors/registry.h"
#include "core/error.h"
#include "data/registry.h"
#include "launch/job.h"
#include "methods/settings.h"
#include "methods/update_method.h"
#include "models/registry.h"
#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"
#include "topology/registry.h"
#include "transport/registry.h"

namespace cohort::apps {
namespace {

struct Section {
  std::string name;
  std::vector<nlohmann::json> entries;  // with "name" and "description"
};

template <class AnyRegistry>
Section section(std::string name, const AnyRegistry& registry) {
  Section result{std::move(name), {}};
  for (const auto& entry : registry.entries()) {
    result.entries.push_back({{"name", entry.name}, {"description", entry.description}});
  }
  return result;
}

nlohmann::json describe(const config::ConfigField& field) {
  const config::SettingValue usual = config::default_of(field);
  nlohmann::json entry = {{"name", field.name},
                          {"description", field.help},
                          {"group", field.group},
                          {"default", config::field_text(config::RunConfig{}, field)},
                          {"methods", methods::methods_with(field.name)}};
  const bool flag = std::holds_alternative<bool>(usual);
  if (flag || std::holds_alternative<std::string>(usual)) {
    entry["choices"] = flag ? std::vector<std::string>{"true", "false"} : field.choices;
  } else {
    entry["lowest"] = field.low;
    entry["highest"] = field.high;
    entry["several"] = std::holds_alternative<std::vector<double>>(usual);
  }
  return entry;
}

// Of all methods; `methods` are those that use a setting, none where all do.
Section settings_section() {
  Section result{"settings", {}};
  for (const config::ConfigField& field : methods::config_fields())
    result.entries.push_back(describe(field));
  return result;
}

std::vector<Section> all_sections() {
  return {section("models", models::models()),
          section("data", data::data_sets()),
          section("methods", methods::methods()),
          section("optimizers", optimizers::optimizers()),
          section("schedules", schedules::schedules()),
          section("compressors", compressors::compressors()),
          section("topologies", topology::topologies()),
          section("collectives", collectives::collectives()),
          section("transports", transport::transports()),
          section("engines", launch::engines()),
          settings_section()};
}

void print_text(const Section& section) {
  std::size_t width = 0;
  const auto text = [](const nlohmann::json& entry, const char* key) {
    return entry.at(key).get<std::string>();
  };
  for (const nlohmann::json& each : section.entries) {
    width = std::max(width, text(each, "name").size());
  }
  fmt::print("{}\n", section.name);
  for (const nlohmann::json& each : section.entries) {
    fmt::print("  {:<{}}  {}\n", text(each, "name"), width, text(each, "description"));
  }
}

void run_list(const std::string& wanted, bool as_json) {
  std::vector<std::string> known;
  nlohmann::json document = nlohmann::json::object();
  bool found = false;
  for (const Section& each : all_sections()) {
    known.push_back(each.name);
    if (!wanted.empty() && wanted != each.name) continue;
    found = true;
    document[each.name] = each.entries;
    if (!as_json) print_text(each);
  }
  if (!found) throw ConfigError(unknown_name("kind", wanted, known));
  if (as_json) fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_list(CLI::App& program, Invocation&) {
  CLI::App* command =
      program.add_subcommand("list", "Models, data sets, methods, settings and so on");
  struct Flags {
    std::string kind;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("kind", flags->kind, "models, data, methods, settings, ...; all if absent");
  command->add_flag("--json", flags->json, "as JSON");
  command->callback([flags] { run_list(flags->kind, flags->json); });
}

}  // namespace cohort::apps
