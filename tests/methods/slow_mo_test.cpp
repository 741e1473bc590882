#include "methods/slow_mo.h"

#include <gtest/gtest.h>

#include "methods/local_rounds.h"

namespace cohort::methods {
namespace {

RoundsReference slow_mo(double momentum, double lr) {
  return {.method = "slow-mo",
          .own = {{"slow-momentum", momentum}, {"slow-lr", lr}},
          .slots = SlotsAfter::kZero,
          .outer = [=](at::Tensor& x, at::Tensor& u, const at::Tensor& d, double rate) {
            u = momentum * u + d / rate;
            x = x - lr * rate * u;
          }};
}

TEST(SlowMo, FollowsItsEquations) {
  expect_rounds(slow_mo(0.7, 1));
  expect_rounds(slow_mo(0.4, 0.8));
  RoundsReference averaged = slow_mo(0.5, 1);
  averaged.own["slow-buffers"] = std::string("average");
  averaged.slots = SlotsAfter::kMean;
  expect_rounds(averaged);
  RoundsReference kept = slow_mo(0.5, 1);
  kept.own["slow-buffers"] = std::string("keep");
  kept.slots = SlotsAfter::kKept;
  kept.optimizer = "adam";
  expect_rounds(kept);
}

TEST(SlowMo, WithoutMomentumIsLocalSgd) {
  RoundsReference plain = slow_mo(0, 1);
  plain.outer = [](at::Tensor& x, at::Tensor&, const at::Tensor& d, double) { x = x - d; };
  expect_rounds(plain);
}

TEST(SlowMo, TakesARateOfZero) {
  Channels channels(2);
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {});
    const auto method = methods().make("slow-mo", channels.options(rank));
    method->start(replica);
    take_step(model, replica, *method, {0, 0.1}, {tiny_batch(1)});
    const at::Tensor before = replica.parameters().clone();
    take_step(model, replica, *method, {1, 0}, {tiny_batch(2)});
    EXPECT_TRUE(replica.parameters().equal(before));
  });
}

}  // namespace
}  // namespace cohort::methods
