#include "config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cohort::config {
namespace {

using testing::HasSubstr;

const ConfigField& field(const std::string& name) {
  for (const ConfigField& each : common_fields()) {
    if (each.name == name) return each;
  }
  throw std::out_of_range(name);
}

std::string refusal(const std::string& text) {
  RunConfig config;
  try {
    merge_json(config, text, "FILE", common_fields());
  } catch (const ConfigError& error) {
    EXPECT_EQ(config, RunConfig{}) << "a refused file must change nothing";
    return error.what();
  }
  return "accepted";
}

TEST(RunConfig, ReadsARunJsonByItsConfigMember) {
  RunConfig config;
  config.model = "resnet20";
  config.lr = 0.1 + 0.2;  // needs all its digits
  config.lr_milestones = {30, 60.5};
  const nlohmann::json document = {{"config", to_json(config, common_fields())},
                                   {"host", "anything"}};
  RunConfig back;
  merge_json(back, document.dump(), "run.json", common_fields());
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

}  // namespace
}  // namespace cohort::config
