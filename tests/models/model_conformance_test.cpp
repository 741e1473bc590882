// Every registered model keeps Model's contract.
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/model_testing.h"
#include "models/registry.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kClasses = 7;

ModelOptions small_options(const std::string& name, std::int64_t size) {
  ModelOptions options = usual_options(name);
  options.height = options.width = size;
  options.classes = kClasses;
  return options;
}

at::Tensor images(const ModelOptions& options, std::uint64_t seed) {
  return at::randn({2, options.channels, options.height, options.width}, seeded(seed));
}

class ModelConformance : public testing::TestWithParam<std::string> {
 protected:
  ModelConformance() { at::set_num_threads(1); }

  static std::unique_ptr<Model> build(const ModelOptions& options, std::uint64_t seed) {
    return models().make(GetParam(), options, seeded(seed));
  }
};

void expect_every_parameter_reached(Model& model, const at::Tensor& inputs) {
  at::Tensor loss = model.forward(inputs).log_softmax(1).select(1, 3).mean().neg();
  for (const AuxiliaryOutput& auxiliary : model.auxiliary()) {
    EXPECT_EQ(auxiliary.logits.sizes(), (at::IntArrayRef{2, kClasses}));
    EXPECT_GT(auxiliary.weight, 0);
    loss = loss.sub(auxiliary.logits.log_softmax(1).select(1, 3).mean(), auxiliary.weight);
  }
  loss.backward();
  for (const Parameter& parameter : model.store().parameters()) {
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>()) << parameter.name;
  }
}

TEST_P(ModelConformance, ForwardIsFiniteBackwardReachesAllAndEvaluationRepeats) {
  if (is_like_another_vgg(GetParam())) GTEST_SKIP() << "vgg16 and vgg11_bn stand for it";
  const std::int64_t usual = is_small_image_model(GetParam()) ? 32 : 64;
  const ModelOptions options = small_options(GetParam(), usual);
  const std::unique_ptr<Model> model = build(options, 1);
  const at::Tensor inputs = images(options, 2);
  expect_every_parameter_reached(*model, inputs);

  c10::NoGradGuard no_gradient;
  model->store().set_training(false);
  const at::Tensor first = model->forward(inputs);
  EXPECT_EQ(first.sizes(), (at::IntArrayRef{2, kClasses}));
  EXPECT_TRUE(first.isfinite().all().item<bool>());
  EXPECT_TRUE(model->forward(inputs).equal(first));
  EXPECT_TRUE(model->auxiliary().empty());
  const at::Tensor last = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(model->forward(last).allclose(first, 1e-3, 1e-4));
}

TEST_P(ModelConformance, TakesItsSmallestImageInGreyAndRefusesSmaller) {
  const std::int64_t size = smallest_size(GetParam());
  ModelOptions options = small_options(GetParam(), size);
  options.channels = 1;
  // Not filled: only shapes matter here.
  const std::unique_ptr<Model> model = models().make(GetParam(), options, at::Generator());
  model->store().set_training(false);
  c10::NoGradGuard no_gradient;
  EXPECT_EQ(model->forward(images(options, 2)).sizes(), (at::IntArrayRef{2, kClasses}));
  options.height = size - 1;
  EXPECT_THROW(models().make(GetParam(), options, at::Generator()), ConfigError);
}

TEST_P(ModelConformance, TheSeedDecidesTheInitialValues) {
  const std::string name = GetParam();
  if (is_like_another_vgg(name) || name == "vgg16") GTEST_SKIP() << "vgg11_bn stands for it";
  const ModelOptions options = small_options(name, is_small_image_model(name) ? 32 : 64);
  const std::unique_ptr<Model> one = build(options, 5);
  const std::unique_ptr<Model> same = build(options, 5);
  const std::unique_ptr<Model> other = build(options, 6);
  bool differs = false;
  for (std::size_t index = 0; index < one->store().parameters().size(); ++index) {
    const Parameter& parameter = one->store().parameters()[index];
    EXPECT_TRUE(parameter.value.isfinite().all().item<bool>()) << parameter.name;
    EXPECT_TRUE(parameter.value.equal(same->store().parameters()[index].value)) << parameter.name;
    differs |= !parameter.value.equal(other->store().parameters()[index].value);
  }
  EXPECT_TRUE(differs);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name) {
    if (letter == '-') letter = '_';
  }
  return name;
}

// Language models have a test of their own, lstm_test.cpp.
std::vector<std::string> image_models() {
  std::vector<std::string> names = models().names();
  std::erase_if(names, [](const std::string& name) { return takes_text(name); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllModels, ModelConformance, testing::ValuesIn(image_models()), test_name);

TEST(GoogLeNet, HasTwoAuxiliaryOutputsOfWeightThreeTenthsInTraining) {
  const ModelOptions options = small_options("googlenet", 64);
  const auto model = models().make("googlenet", options, seeded(1));
  model->forward(images(options, 2));
  ASSERT_EQ(model->auxiliary().size(), 2u);
  EXPECT_EQ(model->auxiliary()[0].weight, 0.3);
  EXPECT_EQ(model->auxiliary()[1].weight, 0.3);
}

// Goyal et al. 2017, section 5.1: the network begins as one with the signal through the shortcuts.
TEST(DistResNet, BlocksBeginAsTheirShortcuts) {
  const ModelOptions options = small_options("dist_resnet50", 64);
  const auto model = models().make("dist_resnet50", options, seeded(1));
  const auto usual = models().make("resnet50", options, seeded(1));
  int zero = 0;
  for (std::size_t i = 0; i < model->store().parameters().size(); ++i) {
    const Parameter& parameter = model->store().parameters()[i];
    if (parameter.name.ends_with("bn3.weight")) {
      EXPECT_EQ(parameter.value.abs().max().item<float>(), 0) << parameter.name;
      ++zero;
    } else {
      EXPECT_TRUE(parameter.value.equal(usual->store().parameters()[i].value)) << parameter.name;
    }
  }
  EXPECT_EQ(zero, 3 + 4 + 6 + 3);
}

TEST(Mlp, TakesAnyShapeWithItsNumberOfInputs) {
  const auto model = models().make("mlp-100", usual_options("mlp-100"), seeded(1));
  EXPECT_EQ(model->forward(at::randn({3, 784})).sizes(), (at::IntArrayRef{3, 10}));
  EXPECT_EQ(model->forward(at::randn({3, 1, 28, 28})).sizes(), (at::IntArrayRef{3, 10}));
}

TEST(LeNet, TakesMnistAndCifar) {
  ModelOptions options = usual_options("lenet");
  EXPECT_EQ(models().make("lenet", options, seeded(1))->forward(at::randn({1, 1, 28, 28})).size(1),
            10);
  options.channels = 3;
  options.height = options.width = 32;
  EXPECT_EQ(models().make("lenet", options, seeded(1))->forward(at::randn({1, 3, 32, 32})).size(1),
            10);
}

TEST(Vgg, TakesCifarWithTenClasses) {
  ModelOptions options = small_options("vgg16", 32);
  options.classes = 10;
  const auto model = models().make("vgg16", options, at::Generator());
  c10::NoGradGuard no_gradient;
  model->store().set_training(false);
  EXPECT_EQ(model->forward(images(options, 1)).sizes(), (at::IntArrayRef{2, 10}));
}

TEST(Mlp, StartsFromStandardNormalWeightsAndZeroBiases) {
  const auto model = models().make("mlp-100", usual_options("mlp-100"), seeded(1));
  const auto& parameters = model->store().parameters();
  EXPECT_NEAR(parameters[0].value.std().item<double>(), 1, 0.02);
  EXPECT_EQ(parameters[1].value.abs().max().item<float>(), 0);
  EXPECT_EQ(parameters[3].value.abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace cohort::models
