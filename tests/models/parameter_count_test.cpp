#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "models/model_testing.h"
#include "models/registry.h"

namespace cohort::models {
namespace {

// Published figures: torchvision's and timm's at 1000 classes, the papers' for CIFAR and MNIST.
const std::map<std::string, std::int64_t>& published_counts() {
  static const std::map<std::string, std::int64_t> counts = {
      {"mlp-100", 79'510},
      {"mlp-4096", 784 * 4096 + 4096 + 4096 * 4096 + 4096 + 40960 + 10},
      {"lenet", 61'706},
      {"mnistnet", 431'080},
      {"cifar10net", 657'080},
      {"resnet8", 78'042},
      {"resnet20", 272'474},
      {"resnet32", 466'906},
      {"resnet44", 684'058},
      {"resnet56", 869'530},
      {"resnet110", 1'704'154},
      {"wideresnet", 5'849'050},
      {"densenet", 599'050},
      {"resnet18", 11'689'512},
      {"resnet18-cifar", 11'173'962},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"resnext50_32x4d", 25'028'904},
      {"wide_resnet50_2", 68'883'240},
      {"se_resnext50_32x4d", 27'559'896},
      {"dist_resnet50", 25'557'032},
      {"vgg11", 132'863'336},
      {"vgg13", 133'047'848},
      {"vgg16", 138'357'544},
      {"vgg19", 143'667'240},
      {"vgg11_bn", 132'868'840},
      {"vgg13_bn", 133'053'736},
      {"vgg16_bn", 138'365'992},
      {"vgg19_bn", 143'678'248},
      {"alexnet", 61'100'840},
      {"googlenet", 13'004'888},
      {"densenet121", 7'978'856},
      {"squeezenet1_0", 1'248'424},
      {"mobilenet_v2", 3'504'872},
      {"lstm", 28'949'319},
  };
  return counts;
}

std::int64_t count(const std::string& name, const ModelOptions& options) {
  return models().make(name, options, at::Generator())->store().numel();
}

TEST(ParameterCount, IsThePublishedOneForEveryModel) {
  EXPECT_EQ(models().entries().size(), published_counts().size());
  for (const auto& [name, expected] : published_counts()) {
    EXPECT_EQ(count(name, usual_options(name)), expected) << name;
  }
}

TEST(ParameterCount, FollowsDepthWideningAndGrowth) {
  ModelOptions options = usual_options("wideresnet");
  options.widen = 10;
  EXPECT_EQ(count("wideresnet", options), 36'479'194);  // WRN-28-10 in the paper: 36.5 M
  options.depth = 16;
  options.widen = 8;
  EXPECT_EQ(count("wideresnet", options), 10'961'370);  // WRN-16-8: 11.0 M
  options.depth = 100;
  EXPECT_EQ(count("densenet", options), 4'068'490);
  options.depth = 40;
  options.growth = 24;
  EXPECT_GT(count("densenet", options), 2 * count("densenet", usual_options("densenet")));
}

TEST(ParameterCount, OfLstmFollowsUnitsLayersAndTying) {
  ModelOptions options = usual_options("lstm");
  options.classes = 100;
  options.rnn_hidden = 10;
  options.rnn_layers = 2;
  // Embedding, two layers of 4 gates with two matrices and two biases each, output bias.
  EXPECT_EQ(count("lstm", options), 1000 + 2 * (4 * 10 * 20 + 2 * 40) + 100);
  options.tie_weights = false;
  EXPECT_EQ(count("lstm", options), 1000 + 2 * (4 * 10 * 20 + 2 * 40) + 1000 + 100);
  options.rnn_layers = 0;
  EXPECT_THROW(count("lstm", options), ConfigError);
}

TEST(ModelOptions, ImagesAndTextAreNotMixedUp) {
  for (const auto& entry : models().entries()) {
    ModelOptions options = usual_options(entry.name);
    options.text = !options.text;
    try {
      count(entry.name, options);
      FAIL() << entry.name;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(options.text ? "--model lstm" : "wikitext-2"));
    }
  }
}

TEST(ParameterCount, ImpossibleShapesAreTheUsersError) {
  ModelOptions options = usual_options("wideresnet");
  options.depth = 27;
  EXPECT_THROW(count("wideresnet", options), ConfigError);
  options.depth = 28;
  options.widen = -1;
  EXPECT_THROW(count("wideresnet", options), ConfigError);
  options.depth = 41;
  EXPECT_THROW(count("densenet", options), ConfigError);
  options.depth = 40;
  options.growth = -3;
  EXPECT_THROW(count("densenet", options), ConfigError);
}

TEST(ModelOptions, NeedChannelsClassesAndAProperDropout) {
  for (const auto& entry : models().entries()) {
    ModelOptions options = usual_options(entry.name);
    options.classes = 0;
    EXPECT_THROW(count(entry.name, options), ConfigError) << entry.name;
    options = usual_options(entry.name);
    options.channels = 0;
    EXPECT_THROW(count(entry.name, options), ConfigError) << entry.name;
    options = usual_options(entry.name);
    options.dropout = 1;
    EXPECT_THROW(count(entry.name, options), ConfigError) << entry.name;
  }
}

TEST(ModelOptions, TooSmallImagesNameTheModelTheSizeAndTheWayOut) {
  ModelOptions options = usual_options("mnistnet");
  options.classes = 10;
  try {
    count("alexnet", options);
    FAIL() << "28x28 is too small for AlexNet";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'alexnet'"));
    EXPECT_THAT(error.what(), testing::HasSubstr("63x63"));
    EXPECT_THAT(error.what(), testing::HasSubstr("28x28"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--image-size"));
  }
}

TEST(ModelRegistry, UnknownNamesListTheKnown) {
  try {
    models().find("resnet5O");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("resnet50"));
    EXPECT_THAT(error.what(), testing::HasSubstr("mobilenet_v2"));
  }
}

}  // namespace
}  // namespace cohort::models
