#include "methods/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compressors/registry.h"
#include "core/error.h"
#include "methods/update_method.h"
#include "topology/registry.h"

namespace cohort {
namespace {

using testing::HasSubstr;

TEST(ConfigFields, HaveDistinctNamesHelpAndDefaultsInsideTheirOwnRanges) {
  std::set<std::string> names;
  for (const ConfigField& each : config_fields()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.help.empty()) << each.name;
    RunConfig config;
    EXPECT_NO_THROW(set_field(config, each, field_text(RunConfig{}, each))) << each.name;
    EXPECT_EQ(config, RunConfig{}) << each.name;
  }
}

// A value that the field accepts and that is not its default.
std::string another_value(const ConfigField& each) {
  const std::string usual = field_text(RunConfig{}, each);
  if (!each.choices.empty()) return each.choices.back();
  for (const char* candidate :
       {"something", "true", "false", "1.5,2.25", "3", "4", "0.5", "0.25", "500"}) {
    RunConfig config;
    try {
      set_field(config, each, candidate);
    } catch (const ConfigError&) {
      continue;
    }
    if (field_text(config, each) != usual) return candidate;
  }
  ADD_FAILURE() << "no other value found for " << each.name;
  return usual;
}

TEST(ConfigFields, SurviveBeingWrittenAndReadWhenEachDiffersFromItsDefault) {
  RunConfig config;
  for (const ConfigField& each : config_fields()) set_field(config, each, another_value(each));
  for (const ConfigField& each : config_fields()) {
    EXPECT_NE(field_text(config, each), field_text(RunConfig{}, each)) << each.name;
  }
  RunConfig back;
  merge_json(back, to_json(config).dump(), "test");
  EXPECT_EQ(back, config);
}

TEST(CheckConfig, FindsCombinationsThatMakeNoSense) {
  RunConfig config;
  EXPECT_NO_THROW(check_config(config));
  config.lr_scaling = "linear";
  EXPECT_THROW(check_config(config), ConfigError);
}

TEST(CheckConfig, RefusesSettingsThatWouldDoNothing) {
  const auto refused = [](auto&& change) {
    RunConfig config;
    change(config);
    EXPECT_THROW(check_config(config), ConfigError);
  };
  refused([](RunConfig& c) { c.nesterov = true, c.optimizer = "adam"; });
  refused([](RunConfig& c) { c.base_batch = 256; });
  refused([](RunConfig& c) { set_setting(c, "average-every", Step{4}); });
  refused([](RunConfig& c) { c.warmup_from = 0.1; });
  refused([](RunConfig& c) { c.lr_milestones = {1, 2}; });
  refused([](RunConfig& c) { c.lr_values = {1, 2}; });
  refused([](RunConfig& c) { c.depth = 40; });
  refused([](RunConfig& c) { c.widen = 2; });
  refused([](RunConfig& c) { c.growth = 12; });
  refused([](RunConfig& c) { set_setting(c, "check-replicas", Step{7}); });
}

TEST(CheckConfig, ComparesReplicasOnlyWhereTheyShouldBeEqual) {
  RunConfig config;
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
    for (const ConfigField& each : config_fields()) {
      if (methods_with(each.name).empty()) continue;
      RunConfig config;
      config.method = entry.name;
      config.compressor = each.name == "compressor" ? "top-k" : config.compressor;
      set_field(config, each, another_value(each));
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
  RunConfig config;
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
}  // namespace cohort
