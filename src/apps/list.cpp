#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "collectives/registry.h"
#include "compressors/registry.h"
#include "core/error.h"
#include "data/registry.h"
#include "launch/job.h"
#include "methods/update_method.h"
#include "models/registry.h"
#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"
#include "topology/registry.h"
#include "transport/registry.h"

namespace cohort {
namespace {

struct Section {
  std::string name;
  std::vector<std::pair<std::string, std::string>> entries;  // name, description
};

template <class AnyRegistry>
Section section(std::string name, const AnyRegistry& registry) {
  Section result{std::move(name), {}};
  for (const auto& entry : registry.entries()) {
    result.entries.emplace_back(entry.name, entry.description);
  }
  return result;
}

std::vector<Section> all_sections() {
  return {section("models", models()),         section("data", data_sets()),
          section("methods", methods()),       section("optimizers", optimizers()),
          section("schedules", schedules()),   section("compressors", compressors()),
          section("topologies", topologies()), section("collectives", collectives()),
          section("transports", transports()), section("engines", engines())};
}

void print_text(const Section& section) {
  std::size_t width = 0;
  for (const auto& [name, description] : section.entries) width = std::max(width, name.size());
  fmt::print("{}\n", section.name);
  for (const auto& [name, description] : section.entries) {
    fmt::print("  {:<{}}  {}\n", name, width, description);
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
    for (const auto& [name, description] : each.entries) {
      document[each.name].push_back({{"name", name}, {"description", description}});
    }
    if (!as_json) print_text(each);
  }
  if (!found) throw ConfigError(unknown_name("kind", wanted, known));
  if (as_json) fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_list(CLI::App& program, Invocation&) {
  CLI::App* command = program.add_subcommand("list", "Models, data sets, methods and so on");
  struct Flags {
    std::string kind;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("kind", flags->kind, "models, data, methods, optimizers, ...; all if absent");
  command->add_flag("--json", flags->json, "as JSON");
  command->callback([flags] { run_list(flags->kind, flags->json); });
}

}  // namespace cohort
