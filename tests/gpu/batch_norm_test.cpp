// Batch normalisation by the kernels, beside libtorch's in float64 on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "engine/generator.h"
#include "methods/replica.h"
#include "models/layers.h"

namespace cohort {
namespace {

enum class Form { kAlone, kRelu, kShortcut };

struct Case {
  std::int64_t samples, channels, side;
  at::ScalarType type;
  Form form;
};

class OneNorm final : public models::Model {
 public:
  OneNorm(std::int64_t channels, Form form)
      : models::Model(engine::make_generator(1)),
        form_(form),
        norm_(models::Scope(store()) / "bn", channels) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    if (form_ == Form::kAlone) return norm_(inputs);
    return form_ == Form::kRelu ? norm_.relu(inputs) : norm_.add_relu(inputs, shortcut);
  }

  at::Tensor shortcut;

 private:
  Form form_;
  models::BatchNorm2d norm_;
};

at::Tensor noise(at::IntArrayRef shape, std::uint64_t seed) {
  return at::empty(shape).normal_(0.3, 1.5, engine::make_generator(seed, at::kCPU));
}

// How far `got` is from `expected`, as a share of what is usual there.
double error_of(const at::Tensor& got, const at::Tensor& expected) {
  const double size = expected.abs().mean().item<double>() + 1e-12;
  return (got.detach().cpu().to(at::kDouble) - expected).abs().mean().item<double>() / size;
}

class FusedBatchNorm : public testing::TestWithParam<Case> {};

TEST_P(FusedBatchNorm, IsThatOfLibtorch) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const auto [samples, channels, side, type, form] = GetParam();
  const std::int64_t shape[] = {samples, channels, side, side};
  const at::Device gpu(at::kCUDA, 0);
  const auto placed = [&](const at::Tensor& values) {
    return values.to(gpu).to(type, false, false, at::MemoryFormat::ChannelsLast);
  };
  OneNorm model(channels, form);
  methods::Replica replica(model, {.device = gpu});
  model.store().set_training(true);
  at::Tensor x = placed(noise(shape, 1)).requires_grad_(true);
  at::Tensor shortcut = placed(noise(shape, 2)).requires_grad_(true);
  const at::Tensor gradient = placed(noise(shape, 3));
  model.shortcut = shortcut;
  replica.begin_step();
  replica.begin_pass(true);
  const at::Tensor y = model.forward(x);
  EXPECT_EQ(y.scalar_type(), type);
  y.backward(gradient);
  replica.finish_backward();

  const auto wide = [](const at::Tensor& values) {
    return values.detach().cpu().to(at::kDouble).requires_grad_(true);
  };
  at::Tensor wide_x = wide(x), wide_shortcut = wide(shortcut);
  at::Tensor weight = at::ones({channels}, at::kDouble).requires_grad_(true);
  at::Tensor bias = at::zeros({channels}, at::kDouble).requires_grad_(true);
  at::Tensor mean = at::zeros({channels}, at::kDouble),
             variance = at::ones({channels}, at::kDouble);
  at::Tensor expected =
      at::batch_norm(wide_x, weight, bias, mean, variance, true, 0.1, 1e-5, false);
  if (form == Form::kShortcut) expected = expected + wide_shortcut;
  if (form != Form::kAlone) expected = expected.relu();
  expected.backward(gradient.cpu().to(at::kDouble));

  const double tolerance = type == at::kFloat ? 1e-5 : 8e-3;
  EXPECT_LT(error_of(y, expected.detach()), tolerance);
  EXPECT_LT(error_of(x.grad(), wide_x.grad()), tolerance);
  if (form == Form::kShortcut) {
    EXPECT_LT(error_of(shortcut.grad(), wide_shortcut.grad()), tolerance);
  }
  EXPECT_LT(error_of(model.store().parameters()[0].gradient, weight.grad()), tolerance);
  EXPECT_LT(error_of(model.store().parameters()[1].gradient, bias.grad()), tolerance);
  EXPECT_LT(error_of(model.store().buffers()[0].value, mean), tolerance);
  EXPECT_LT(error_of(model.store().buffers()[1].value, variance), tolerance);
  EXPECT_EQ(model.store().buffers()[2].value.item<std::int64_t>(), 1);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Form form : {Form::kAlone, Form::kRelu, Form::kShortcut}) {
      // A whole tile; many narrow rows; few wide ones; sizes that no power of two divides.
      all.push_back({32, 64, 16, type, form});
      all.push_back({16, 16, 32, type, form});
      all.push_back({4, 512, 7, type, form});
      all.push_back({7, 24, 5, type, form});
      all.push_back({6, 8, 1, type, form});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, FusedBatchNorm, testing::ValuesIn(cases()));

}  // namespace
}  // namespace cohort
