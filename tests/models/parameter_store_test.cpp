#include "models/parameter_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/initializers.h"
#include "models/model_testing.h"

namespace cohort::models {
namespace {

TEST(Scope, JoinsNamesWithDots) {
  ParameterStore store(seeded(1));
  const Scope root(store);
  EXPECT_EQ(root.name("fc"), "fc");
  EXPECT_EQ((root / "layer1" / 0 / "conv1").name("weight"), "layer1.0.conv1.weight");
}

TEST(ParameterStore, KeepsOrderAddressesAndKinds) {
  ParameterStore store(seeded(1));
  Parameter* first = store.add_parameter("w", {2, 3}, ParameterKind::kWeight, constant(4));
  for (int index = 0; index < 100; ++index) {
    store.add_parameter("p" + std::to_string(index), {1}, ParameterKind::kBias, constant(0));
  }
  EXPECT_EQ(first, &store.parameters().front());
  EXPECT_EQ(first->name, "w");
  EXPECT_EQ(first->kind, ParameterKind::kWeight);
  EXPECT_EQ(store.parameters().back().kind, ParameterKind::kBias);
  EXPECT_TRUE(first->value.requires_grad());
  EXPECT_TRUE(first->value.is_leaf());
  EXPECT_FALSE(first->gradient.defined());
  EXPECT_EQ(first->value.sum().item<float>(), 24);
  EXPECT_EQ(store.numel(), 106);
}

TEST(ParameterStore, WithoutAGeneratorAllocatesButDoesNotFill) {
  ParameterStore store{at::Generator()};
  bool called = false;
  const Parameter* parameter = store.add_parameter(
      "w", {5}, ParameterKind::kWeight, [&](at::Tensor&, at::Generator&) { called = true; });
  EXPECT_FALSE(called);
  EXPECT_EQ(parameter->value.numel(), 5);
  EXPECT_TRUE(parameter->value.requires_grad());
}

TEST(ParameterStoreDeathTest, RefusesASecondTensorOfTheSameName) {
  ParameterStore store(seeded(1));
  store.add_parameter("w", {1}, ParameterKind::kWeight, constant(0));
  EXPECT_DEATH(store.add_parameter("w", {1}, ParameterKind::kWeight, constant(0)), "called w");
  EXPECT_DEATH(store.add_buffer("w", at::Tensor()), "called w");
}

at::Tensor drawn(const Initializer& initializer, at::IntArrayRef shape, std::uint64_t seed = 7) {
  ParameterStore store(seeded(seed));
  return store.add_parameter("w", shape, ParameterKind::kWeight, initializer)->value.detach();
}

double deviation(const at::Tensor& values) { return values.std().item<double>(); }
double largest(const at::Tensor& values) { return values.abs().max().item<double>(); }

TEST(Initializers, HaveTheMomentsTheyPromise) {
  const std::vector<std::int64_t> shape = {64, 32, 5, 5};  // fan-in 800, fan-out 1600
  EXPECT_NEAR(deviation(drawn(normal(3), shape)), 3, 0.05);
  EXPECT_NEAR(deviation(drawn(kaiming_normal_fan_in(), shape)), std::sqrt(2.0 / 800), 1e-3);
  EXPECT_NEAR(deviation(drawn(kaiming_normal_fan_out(), shape)), std::sqrt(2.0 / 1600), 1e-3);

  const double bound = 1 / std::sqrt(800.0);
  EXPECT_NEAR(largest(drawn(torch_default_weight(), shape)), bound, bound / 100);
  EXPECT_LE(largest(drawn(torch_default_weight(), shape)), bound);
  EXPECT_NEAR(largest(drawn(torch_default_bias(800), {10000})), bound, bound / 100);
  EXPECT_NEAR(largest(drawn(kaiming_uniform(0), shape)), std::sqrt(6.0 / 800), 1e-3);
  EXPECT_NEAR(largest(drawn(uniform(0.1), shape)), 0.1, 1e-3);
  EXPECT_NEAR(drawn(uniform(0.1), shape).mean().item<double>(), 0, 1e-3);
}

TEST(Initializers, TruncatedNormalStaysInsideWithoutPilingUpAtTheEnds) {
  const at::Tensor values = drawn(truncated_normal(1, -1, 1), {100000});
  EXPECT_LE(largest(values), 1);
  // Of a normal cut at one deviation the deviation is 0.5396; mere clamping would give 0.718.
  EXPECT_NEAR(deviation(values), 0.5396, 0.01);
}

TEST(Initializers, DrawOnlyFromTheGeneratorGiven) {
  const at::Tensor first = drawn(normal(1), {100}, 3);
  const at::Tensor second = drawn(normal(1), {100}, 3);
  const at::Tensor other = drawn(normal(1), {100}, 4);
  EXPECT_TRUE(first.equal(second));
  EXPECT_FALSE(first.equal(other));
}

}  // namespace
}  // namespace cohort::models
