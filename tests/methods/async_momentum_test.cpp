#include "methods/async_momentum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "methods/settings.h"

namespace cohort::methods {
namespace {

using testing::HasSubstr;

std::string adapt(config::RunConfig& config, const std::string& given = "") {
  return adapt_to_method(config, [&](const std::string& setting) { return setting == given; }).note;
}

config::RunConfig asynchronous(int workers) {
  config::RunConfig config;
  config.method = "parameter-server";
  config.server_mode = "async";
  config.workers = workers;
  return config;
}

TEST(AsyncMomentum, MakesTheUsualOneTogetherWithThatOfAsynchrony) {
  const std::pair<int, double> expected[] = {{2, 0.4}, {3, 0.233}, {4, 0.15}, {8, 0.025}, {64, 0}};
  for (const auto& [workers, momentum] : expected) {
    for (const char* mode : {"async", "ssp"}) {
      config::RunConfig config = asynchronous(workers);
      config.server_mode = mode;
      EXPECT_THAT(adapt(config), HasSubstr("instead of 0.9"));
      EXPECT_DOUBLE_EQ(config.momentum, momentum) << workers;
    }
  }
}

TEST(AsyncMomentum, LeavesEverythingElseAlone) {
  const auto unchanged = [](config::RunConfig config) {
    const config::RunConfig before = config;
    EXPECT_EQ(adapt(config), "");
    EXPECT_EQ(config, before);
  };
  unchanged(asynchronous(1));
  config::RunConfig config = asynchronous(2);
  config.server_mode = "sync";
  unchanged(config);
  config = asynchronous(2);
  config.optimizer = "adam";
  unchanged(config);
  config = asynchronous(2);
  config.nesterov = true;
  unchanged(config);
  config = asynchronous(2);
  config.method = "all-reduce";
  unchanged(config);
  config = asynchronous(2);
  config.momentum = 0;
  unchanged(config);
  config = asynchronous(2);
  EXPECT_EQ(adapt(config, "momentum"), "");
}

}  // namespace
}  // namespace cohort::methods
