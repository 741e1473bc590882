#include "methods/diloco.h"

#include <gtest/gtest.h>

#include "methods/local_rounds.h"
#include "methods/settings.h"

namespace cohort::methods {
namespace {

TEST(Diloco, FollowsItsEquations) {
  for (const auto& [lr, momentum] : {std::pair(0.7, 0.9), std::pair(1.0, 0.0)}) {
    expect_rounds({.method = "diloco",
                   .optimizer = "adamw",
                   .own = {{"outer-lr", lr}, {"outer-momentum", momentum}},
                   .outer = [lr = lr, momentum = momentum](at::Tensor& x, at::Tensor& u,
                                                           const at::Tensor& d, double) {
                     u = momentum * u + d;
                     x = x - lr * (d + momentum * u);
                   }});
  }
}

TEST(Diloco, ChoosesAdamwUnlessTheUserChose) {
  const auto chosen = [](const std::string& given) {
    config::RunConfig config;
    config.method = "diloco";
    adapt_to_method(config, [&](const std::string& setting) { return setting == given; });
    return config;
  };
  EXPECT_EQ(chosen("").optimizer, "adamw");
  EXPECT_EQ(chosen("").lr, 0.001);
  EXPECT_EQ(chosen("lr").optimizer, "adamw");
  EXPECT_EQ(chosen("lr").lr, config::RunConfig{}.lr);
  for (const char* given : {"optimizer", "momentum", "nesterov"}) {
    EXPECT_EQ(chosen(given).optimizer, "sgd") << given;
  }
}

TEST(Diloco, SpeaksRarelyUnlessTold) {
  config::RunConfig config;
  config.method = "diloco";
  EXPECT_EQ(steps_between_exchanges(config), 500);
  set_setting(config, "average-every", Step{20});
  EXPECT_EQ(steps_between_exchanges(config), 20);
}

}  // namespace
}  // namespace cohort::methods
