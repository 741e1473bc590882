#include "models/linear_function.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/layers.h"
#include "models/model_testing.h"

namespace cohort::models {
namespace {

// A layer with gradients in one arena, as a Replica has them, and what autograd makes of the same.
class LinearGradient : public testing::Test {
 protected:
  LinearGradient() : store_(seeded(1)), linear_(Scope(store_) / "fc", 7, 5) {
    arena_ = at::zeros({store_.numel()});
    std::int64_t offset = 0;
    for (Parameter& parameter : store_.parameters()) {
      const std::int64_t numel = parameter.value.numel();
      parameter.gradient = arena_.narrow(0, offset, numel).view(parameter.value.sizes());
      offset += numel;
    }
    arena_.fill_(123);  // what an earlier step left there
  }

  Parameter& weight() { return store_.parameters()[0]; }
  Parameter& bias() { return store_.parameters()[1]; }

  // The gradients of a loss that weighs all outputs differently, by plain autograd.
  std::vector<at::Tensor> expected(const at::Tensor& input) {
    const at::Tensor copy = input.detach().clone().requires_grad_();
    const at::Tensor w = weight().value.detach().clone().requires_grad_();
    const at::Tensor b = bias().value.detach().clone().requires_grad_();
    at::linear(copy, w, b).relu().pow(2).sum().backward();
    return {copy.grad(), w.grad(), b.grad()};
  }

  void backward(const at::Tensor& input) { relu_in_place(linear_(input)).pow(2).sum().backward(); }

  ParameterStore store_;
  Linear linear_;
  at::Tensor arena_;
};

void expect_close(const at::Tensor& actual, const at::Tensor& wanted) {
  EXPECT_TRUE(actual.allclose(wanted, 1e-6, 1e-6)) << actual << wanted;
}

TEST_F(LinearGradient, OverwritesTheArenaWithWhatAutogradComputes) {
  const at::Tensor input = at::randn({4, 7}, seeded(2)).requires_grad_();
  const auto wanted = expected(input);
  backward(input);
  expect_close(input.grad(), wanted[0]);
  expect_close(weight().gradient, wanted[1]);
  expect_close(bias().gradient, wanted[2]);
  EXPECT_TRUE(arena_.narrow(0, 0, 35).view({5, 7}).equal(weight().gradient));
  EXPECT_FALSE(weight().value.grad().defined());
  EXPECT_FALSE(bias().value.grad().defined());
}

TEST_F(LinearGradient, AddsWhereAccumulateIsSetAtBackwardTime) {
  const at::Tensor first = at::randn({4, 7}, seeded(2));
  const at::Tensor second = at::randn({3, 7}, seeded(3));
  const at::Tensor third = at::randn({2, 7}, seeded(4));
  backward(first);
  const at::Tensor loss = relu_in_place(linear_(second)).pow(2).sum();
  weight().accumulate = bias().accumulate = true;
  loss.backward();
  backward(third);
  const auto a = expected(first), b = expected(second), c = expected(third);
  expect_close(weight().gradient, a[1].add(b[1]).add(c[1]));
  expect_close(bias().gradient, a[2].add(b[2]).add(c[2]));
}

TEST_F(LinearGradient, HandlesInputsOfMoreDimensions) {
  const at::Tensor input = at::randn({2, 3, 7}, seeded(2)).requires_grad_();
  const auto wanted = expected(input);
  backward(input);
  EXPECT_EQ(linear_(input).sizes(), (at::IntArrayRef{2, 3, 5}));
  expect_close(input.grad(), wanted[0]);
  expect_close(weight().gradient, wanted[1]);
  expect_close(bias().gradient, wanted[2]);
}

TEST_F(LinearGradient, HandlesGradientsThatAreBroadcast) {
  const at::Tensor input = at::randn({4, 7}, seeded(2));
  linear_(input).sum().backward();  // its gradient has stride 0 everywhere
  expect_close(weight().gradient, input.sum(0).expand({5, 7}));
  expect_close(bias().gradient, at::full_like(bias().value.detach(), 4));
}

TEST_F(LinearGradient, WithoutAnArenaGoesTheOrdinaryWay) {
  const at::Tensor input = at::randn({4, 7}, seeded(2));
  const auto wanted = expected(input);
  weight().gradient = at::Tensor();
  bias().gradient = at::Tensor();
  backward(input);
  expect_close(weight().value.grad(), wanted[1]);
  expect_close(bias().value.grad(), wanted[2]);
}

TEST_F(LinearGradient, EvaluationBuildsNoGraph) {
  c10::NoGradGuard no_gradient;
  EXPECT_FALSE(linear_(at::randn({4, 7}, seeded(2))).requires_grad());
}

TEST(LinearWithoutBias, LeavesTheBiasOut) {
  ParameterStore store(seeded(1));
  const Linear linear(Scope(store) / "fc", 3, 2, {.bias = false});
  ASSERT_EQ(store.parameters().size(), 1u);
  Parameter& weight = store.parameters()[0];
  weight.gradient = at::zeros({2, 3});
  const at::Tensor input = at::randn({4, 3}, seeded(2));
  const at::Tensor output = linear(input);
  EXPECT_TRUE(output.allclose(input.matmul(weight.value.t())));
  output.sum().backward();
  expect_close(weight.gradient, input.sum(0).expand({2, 3}));
}

}  // namespace
}  // namespace cohort::models
