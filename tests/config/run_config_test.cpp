#include "config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"

namespace cohort {
namespace {

using testing::HasSubstr;

const ConfigField& field(const std::string& name) {
  for (const ConfigField& each : config_fields()) {
    if (each.name == name) return each;
  }
  throw std::out_of_range(name);
}

std::string refusal(const std::string& text) {
  RunConfig config;
  try {
    merge_json(config, text, "FILE");
  } catch (const ConfigError& error) {
    EXPECT_EQ(config, RunConfig{}) << "a refused file must change nothing";
    return error.what();
  }
  return "accepted";
}

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

TEST(RunConfig, ReadsARunJsonByItsConfigMember) {
  RunConfig config;
  config.model = "resnet20";
  config.lr = 0.1 + 0.2;  // needs all its digits
  config.lr_milestones = {30, 60.5};
  const nlohmann::json document = {{"config", to_json(config)}, {"host", "anything"}};
  RunConfig back;
  merge_json(back, document.dump(), "run.json");
  EXPECT_EQ(back, config);
}

TEST(RunConfig, RefusesWhatItDoesNotUnderstandAndSaysWhat) {
  EXPECT_THAT(refusal("{\"modle\": \"lenet\"}"), HasSubstr("did you mean 'model'"));
  EXPECT_THAT(refusal("{\"batch\": \"many\"}"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("{\"batch\": 1.5}"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("{\"batch\": 0}"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("{\"epochs\": -3}"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("{\"lr\": 1e999}"), HasSubstr("FILE"));
  EXPECT_THAT(refusal("{\"partition\": \"fair\"}"), HasSubstr("dirichlet"));
  EXPECT_THAT(refusal("{\"model\": 3}"), HasSubstr("a text"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("JSON object"));
  EXPECT_THAT(refusal("{\"model\": "), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"config\": 7}"), HasSubstr("JSON object"));
}

TEST(RunConfig, RefusesFlagsThatAreNotNumbersOrOutOfRange) {
  RunConfig config;
  EXPECT_THROW(set_field(config, field("batch"), "12x"), ConfigError);
  EXPECT_THROW(set_field(config, field("batch"), ""), ConfigError);
  EXPECT_THROW(set_field(config, field("batch"), "-1"), ConfigError);
  EXPECT_THROW(set_field(config, field("lr"), "nan"), ConfigError);
  EXPECT_THROW(set_field(config, field("momentum"), "1"), ConfigError);
  EXPECT_THROW(set_field(config, field("nesterov"), "perhaps"), ConfigError);
  EXPECT_THROW(set_field(config, field("lr-milestones"), "1,,2"), ConfigError);
  EXPECT_THROW(set_field(config, field("augment"), "mixup"), ConfigError);
  EXPECT_EQ(config, RunConfig{});
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
  refused([](RunConfig& c) { c.average_every = 4; });
  refused([](RunConfig& c) { c.warmup_from = 0.1; });
  refused([](RunConfig& c) { c.lr_milestones = {1, 2}; });
  refused([](RunConfig& c) { c.lr_values = {1, 2}; });
  refused([](RunConfig& c) { c.depth = 40; });
  refused([](RunConfig& c) { c.widen = 2; });
  refused([](RunConfig& c) { c.growth = 12; });
  refused([](RunConfig& c) { c.check_replicas = 7; });
}

TEST(CheckConfig, ComparesReplicasOnlyWhereTheyShouldBeEqual) {
  RunConfig config;
  config.workers = 4;
  for (const char* method : {"d-psgd", "choco", "swamp"}) {
    config.method = method;
    config.check_replicas = 7;
    try {
      check_config(config);
      ADD_FAILURE() << method;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a model of its own")) << method;
    }
    config.check_replicas = 0;
    EXPECT_NO_THROW(check_config(config)) << method;
  }
  config.check_replicas = 7;
  for (const char* method : {"all-reduce", "data-parallel", "ef-sign"}) {
    config.method = method;
    EXPECT_NO_THROW(check_config(config)) << method;
  }
}

}  // namespace
}  // namespace cohort
