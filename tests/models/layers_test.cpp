#include "models/layers.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "models/model_testing.h"

namespace cohort::models {
namespace {

TEST(Conv2d, EqualsItsDefinition) {
  ParameterStore store(seeded(1));
  const Conv2d convolution(Scope(store) / "c", 4, 6, 3,
                           {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
  const at::Tensor input = at::randn({2, 4, 9, 7}, seeded(2));
  const at::Tensor output = convolution(input).detach();
  const at::Tensor weight = store.parameters()[0].value.detach();
  const at::Tensor bias = store.parameters()[1].value.detach();
  ASSERT_EQ(weight.sizes(), (at::IntArrayRef{6, 2, 3, 3}));
  ASSERT_EQ(output.sizes(), (at::IntArrayRef{2, 6, 4, 3}));
  const auto x = input.accessor<float, 4>();
  const auto w = weight.accessor<float, 4>();
  const auto y = output.accessor<float, 4>();
  for (int n = 0; n < 2; ++n)
    for (int out = 0; out < 6; ++out)
      for (int row = 0; row < 4; ++row)
        for (int column = 0; column < 3; ++column) {
          double sum = bias[out].item<float>();
          for (int in = 0; in < 2; ++in)
            for (int i = 0; i < 3; ++i)
              for (int j = 0; j < 3; ++j) {
                const int r = 2 * row - 1 + 2 * i;
                const int c = 2 * column - 1 + 2 * j;
                if (r < 0 || r >= 9 || c < 0 || c >= 7) continue;
                sum += double(w[out][in][i][j]) * x[n][(out / 3) * 2 + in][r][c];
              }
          ASSERT_NEAR(y[n][out][row][column], sum, 1e-5);
        }
}

TEST(BatchNorm2d, RefusesToTrainOnOneValueAChannelAndStaysUnharmed) {
  ParameterStore store(seeded(1));
  const BatchNorm2d normalize(Scope(store) / "bn", 3);
  EXPECT_THROW(normalize(at::randn({1, 3, 1, 1}, seeded(2))), RunError);
  EXPECT_TRUE(store.buffers()[1].value.equal(at::ones({3})));
  store.set_training(false);
  EXPECT_NO_THROW(normalize(at::randn({1, 3, 1, 1}, seeded(2))));
}

TEST(BatchNorm2d, NormalisesInTrainingAndUsesRunningStatisticsInEvaluation) {
  ParameterStore store(seeded(1));
  const BatchNorm2d normalize(Scope(store) / "bn", 3);
  EXPECT_EQ(store.parameters()[0].kind, ParameterKind::kNormalization);
  EXPECT_EQ(store.parameters()[1].kind, ParameterKind::kNormalization);
  const at::Tensor input = at::randn({8, 3, 4, 4}, seeded(2)).mul(2).add(5);
  const at::Tensor mean = input.mean(std::vector<std::int64_t>{0, 2, 3});
  const at::Tensor variance = input.var(std::vector<std::int64_t>{0, 2, 3});

  const at::Tensor output = normalize(input).detach();
  EXPECT_LT(output.mean().abs().item<double>(), 1e-5);
  EXPECT_NEAR(output.std().item<double>(), 1, 1e-2);
  ASSERT_EQ(store.buffers().size(), 3u);
  EXPECT_EQ(store.buffers()[0].name, "bn.running_mean");
  EXPECT_EQ(store.buffers()[1].name, "bn.running_var");
  EXPECT_EQ(store.buffers()[2].name, "bn.num_batches_tracked");
  EXPECT_TRUE(store.buffers()[0].value.allclose(mean.mul(0.1), 1e-4, 1e-5));
  EXPECT_TRUE(store.buffers()[1].value.allclose(variance.mul(0.1).add(0.9), 1e-4, 1e-5));
  EXPECT_EQ(store.buffers()[2].value.item<std::int64_t>(), 1);

  store.set_training(false);
  const at::Tensor running_mean = mean.mul(0.1).view({1, 3, 1, 1});
  const at::Tensor running_variance = variance.mul(0.1).add(0.9).view({1, 3, 1, 1});
  const at::Tensor wanted = input.sub(running_mean).div(running_variance.add(1e-5).sqrt());
  EXPECT_TRUE(normalize(input).allclose(wanted, 1e-4, 1e-4));
  EXPECT_EQ(store.buffers()[2].value.item<std::int64_t>(), 1);
}

TEST(Dropout, KeepsTheMeanAndRepeatsWithItsGenerator) {
  ParameterStore store(seeded(5));
  const at::Tensor input = at::ones({100, 100});
  const at::Tensor first = dropout(store, input, 0.25);
  EXPECT_NEAR(first.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.02);
  EXPECT_NEAR(first.mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(first.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_FALSE(dropout(store, input, 0.25).equal(first));
  store.set_generator(seeded(5));
  EXPECT_TRUE(dropout(store, input, 0.25).equal(first));
}

TEST(Dropout, PassesGradientsOnlyThroughWhatItKept) {
  ParameterStore store(seeded(5));
  const at::Tensor input = at::ones({50}).requires_grad_();
  const at::Tensor output = dropout(store, input, 0.5);
  output.sum().backward();
  EXPECT_TRUE(input.grad().equal(output.detach()));
}

TEST(Dropout, IsTheIdentityInEvaluation) {
  ParameterStore store(seeded(5));
  store.set_training(false);
  const at::Tensor input = at::ones({10});
  EXPECT_TRUE(dropout(store, input, 0.9).is_same(input));
}

TEST(Pooling, TakesMaximaAndMeansOfWindows) {
  const at::Tensor input = at::arange(25, at::kFloat).view({1, 1, 5, 5});
  EXPECT_EQ(max_pool(input, 2).sizes(), (at::IntArrayRef{1, 1, 2, 2}));
  EXPECT_EQ(max_pool(input, 2)[0][0][1][1].item<float>(), 18);
  EXPECT_EQ(max_pool(input, 2, {.ceil_mode = true}).sizes(), (at::IntArrayRef{1, 1, 3, 3}));
  EXPECT_EQ(average_pool(input, 2, 2)[0][0][0][0].item<float>(), 3);
  EXPECT_EQ(global_average(input).sizes(), (at::IntArrayRef{1, 1}));
  EXPECT_EQ(global_average(input).item<float>(), 12);
  EXPECT_EQ(adaptive_average_pool(input, 7, 7).size(3), 7);
}

TEST(Activations, OverwriteTheirArgument) {
  const at::Tensor input = at::arange(-3, 10, at::kFloat);
  EXPECT_TRUE(relu6_in_place(input).is_same(input));
  EXPECT_EQ(input.min().item<float>(), 0);
  EXPECT_EQ(input.max().item<float>(), 6);
}

TEST(Sequential, CallsPartsInOrderAndIsTheIdentityWhenEmpty) {
  const Sequential parts = {[](const at::Tensor& x) { return x.add(1); },
                            [](const at::Tensor& x) { return x.mul(2); }};
  EXPECT_EQ(parts(at::ones({1})).item<float>(), 4);
  const at::Tensor input = at::ones({1});
  EXPECT_TRUE(Sequential()(input).is_same(input));
}

TEST(Layers, KeepChannelsLast) {
  ParameterStore store(seeded(1));
  const Conv2d convolution(Scope(store) / "c", 3, 8, 3, {.padding = 1});
  const BatchNorm2d normalize(Scope(store) / "bn", 8);
  const at::Tensor input =
      at::randn({2, 3, 8, 8}, seeded(2)).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor output = max_pool(relu_in_place(normalize(convolution(input))), 2);
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(output.is_contiguous());
}

}  // namespace
}  // namespace cohort::models
