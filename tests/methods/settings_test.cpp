#include "methods/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compressors/registry.h"
#include "core/error.h"
#include "methods/update_method.h"
#include "topology/registry.h"

namespace cohort::methods {
namespace {

using testing::HasSubstr;

TEST(ConfigFields, HaveDistinctNamesHelpAndDefaultsInsideTheirOwnRanges) {
  std::set<std::string> names;
  for (const config::ConfigField& each : config_fields()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.help.empty()) << each.name;
    config::RunConfig config;
    EXPECT_NO_THROW(config::set_field(config, each, config::field_text(config::RunConfig{}, each)))
        << each.name;
    EXPECT_EQ(config, config::RunConfig{}) << each.name;
  }
}

// A value that the field accepts and that is not its default.
std::string another_value(const config::ConfigField& each) {
  const std::string usual = config::field_text(config::RunConfig{}, each);
  if (!each.choices.empty()) return each.choices.back();
  for (const char* candidate :
       {"something", "true", "false", "1.5,2.25", "3", "4", "0.5", "0.25", "500"}) {
    config::RunConfig config;
    try {
      config::set_field(config, each, candidate);
    } catch (const ConfigError&) {
      continue;
    }
    if (config::field_text(config, each) != usual) return candidate;
  }
  ADD_FAILURE() << "no other value found for " << each.name;
  return usual;
}

TEST(ConfigFields, SurviveBeingWrittenAndReadWhenEachDiffersFromItsDefault) {
  config::RunConfig config;
  for (const config::ConfigField& each : config_fields())
    config::set_field(config, each, another_value(each));
  for (const config::ConfigField& each : config_fields()) {
    EXPECT_NE(config::field_text(config, each), config::field_text(config::RunConfig{}, each))
        << each.name;
  }
  config::RunConfig back;
  merge_json(back, to_json(config).dump(), "test");
  EXPECT_EQ(back, config);
}

TEST(CheckConfig, FindsCombinationsThatMakeNoSense) {
  config::RunConfig config;
  EXPECT_NO_THROW(check_config(config));
  config.lr_scaling = "linear";
  EXPECT_THROW(check_config(config), ConfigError);
}

TEST(CheckConfig, RefusesSettingsThatWouldDoNothing) {
  const auto refused = [](auto&& change) {
    config::RunConfig config;
    change(config);
    EXPECT_THROW(check_config(config), ConfigError);
  };
  refused([](config::RunConfig& c) { c.nesterov = true, c.optimizer = "adam"; });
  refused([](config::RunConfig& c) { c.base_batch = 256; });
  refused([](config::RunConfig& c) { set_setting(c, "average-every", Step{4}); });
  refused([](config::RunConfig& c) { c.warmup_from = 0.1; });
  refused([](config::RunConfig& c) { c.lr_milestones = {1, 2}; });
  refused([](config::RunConfig& c) { c.lr_values = {1, 2}; });
  refused([](config::RunConfig& c) { c.depth = 40; });
  refused([](config::RunConfig& c) { c.widen = 2; });
  refused([](config::RunConfig& c) { c.growth = 12; });
  refused([](config::RunConfig& c) { set_setting(c, "check-replicas", Step{7}); });
}

TEST(CheckConfig, ComparesReplicasOnlyWhereTheyShouldBeEqual) {
  config::RunConfig config;
  config.workers = 4;
  for (const char* method : {"d-psgd", "choco", "swamp"}) {
    config.method = method;
    set_setting(config, "check-replicas", Step{7});
    try {
      check_config(config);
      ADD_FAILURE() << method;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--check-replicas does nothing without")) << method;
    }
    set_setting(config, "check-replicas", Step{0});
    EXPECT_NO_THROW(check_config(config)) << method;
  }
  set_setting(config, "check-replicas", Step{7});
  for (const char* method : {"all-reduce", "data-parallel", "ef-sign"}) {
    config.method = method;
    EXPECT_NO_THROW(check_config(config)) << method;
  }
}

// Of every method, every compressor and every topology that a method chooses.
TEST(CheckConfig, TakesASettingWithTheMethodsThatListItAlone) {
  for (const auto& entry : methods().entries()) {
    for (const config::ConfigField& each : config_fields()) {
      if (methods_with(each.name).empty()) continue;
      config::RunConfig config;
      config.method = entry.name;
      config.compressor = each.name == "compressor" ? "top-k" : config.compressor;
      config::set_field(config, each, another_value(each));
      if (uses(entry.name, each.name)) continue;
      try {
        check_config(config);
        ADD_FAILURE() << entry.name << " takes --" << each.name;
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr(each.name + " does nothing without")) << entry.name;
      }
      EXPECT_NO_THROW(check_config(with_method(config, "local"))) << each.name;
    }
  }
}

TEST(CheckConfig, TakesASettingOfACompressorOrTopologyWithThatAlone) {
  config::RunConfig config;
  config.method = "choco";
  EXPECT_NO_THROW(check_config(config));
  config.quantize_bits = 4;
  EXPECT_THROW(check_config(config), ConfigError);
  config.compressor = "qsgd";
  EXPECT_NO_THROW(check_config(config));
  config.topology = "edges";
  EXPECT_THROW(check_config(config), ConfigError) << "no file of edges";
  config.topology_file = "graph.txt";
  EXPECT_NO_THROW(check_config(config));
  config.topology = "ring";
  EXPECT_THROW(check_config(config), ConfigError) << "a file that nobody reads";
}

}  // namespace
}  // namespace cohort::methods
