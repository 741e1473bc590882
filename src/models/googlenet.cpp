#include "models/googlenet.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>

#include <utility>
#include <vector>

#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr double kAuxiliaryWeight = 0.3;
constexpr double kAuxiliaryDropout = 0.7;
constexpr double kNormalizationEpsilon = 1e-3;

Initializer initial_weight() { return truncated_normal(0.01, -2.0, 2.0); }

at::Tensor ceil_pool(const at::Tensor& input, std::int64_t kernel) {
  return max_pool(input, kernel, {.stride = 2, .ceil_mode = true});
}

// A convolution with batch normalisation; the caller applies ReLU, where it costs least.
class NormalizedConv2d {
 public:
  NormalizedConv2d(const Scope& scope, std::int64_t in_channels, std::int64_t out_channels,
                   std::int64_t kernel, std::int64_t stride = 1)
      : conv_(scope / "conv", in_channels, out_channels, kernel,
              {.stride = stride,
               .padding = kernel / 2,
               .bias = false,
               .weight_initializer = initial_weight()}),
        bn_(scope / "bn", out_channels, kNormalizationEpsilon) {}

  at::Tensor operator()(const at::Tensor& input) const { return bn_(conv_(input)); }

 private:
  Conv2d conv_;
  BatchNorm2d bn_;
};

struct InceptionWidths {
  std::int64_t in, direct, reduced3, out3, reduced5, out5, pooled;
};

class Inception {
 public:
  Inception(const Scope& scope, const InceptionWidths& width)
      : direct_(scope / "branch1", width.in, width.direct, 1),
        reduce3_(scope / "branch2" / 0, width.in, width.reduced3, 1),
        conv3_(scope / "branch2" / 1, width.reduced3, width.out3, 3),
        reduce5_(scope / "branch3" / 0, width.in, width.reduced5, 1),
        conv5_(scope / "branch3" / 1, width.reduced5, width.out5, 3),
        pooled_(scope / "branch4" / 1, width.in, width.pooled, 1) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor around = max_pool(input, 3, {.stride = 1, .padding = 1, .ceil_mode = true});
    return relu_in_place(at::cat({direct_(input), conv3_(relu_in_place(reduce3_(input))),
                                  conv5_(relu_in_place(reduce5_(input))), pooled_(around)},
                                 1));
  }

 private:
  NormalizedConv2d direct_;
  NormalizedConv2d reduce3_;
  NormalizedConv2d conv3_;
  NormalizedConv2d reduce5_;
  NormalizedConv2d conv5_;
  NormalizedConv2d pooled_;
};

class AuxiliaryClassifier {
 public:
  AuxiliaryClassifier(const Scope& scope, std::int64_t in_channels, std::int64_t classes)
      : store_(&scope.store()),
        conv_(scope / "conv", in_channels, 128, 1),
        fc1_(scope / "fc1", 2048, 1024, {.weight_initializer = initial_weight()}),
        fc2_(scope / "fc2", 1024, classes, {.weight_initializer = initial_weight()}) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor features =
        flatten_samples(relu_in_place(conv_(adaptive_average_pool(input, 4, 4))));
    return fc2_(dropout(*store_, relu_in_place(fc1_(features)), kAuxiliaryDropout));
  }

 private:
  ParameterStore* store_;
  NormalizedConv2d conv_;
  Linear fc1_;
  Linear fc2_;
};

class GoogLeNet final : public Model {
 public:
  GoogLeNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        scope_(store()),
        conv1_(scope_ / "conv1", options.channels, 64, 7, 2),
        conv2_(scope_ / "conv2", 64, 64, 1),
        conv3_(scope_ / "conv3", 64, 192, 3),
        inception3_{Inception(scope_ / "inception3a", {192, 64, 96, 128, 16, 32, 32}),
                    Inception(scope_ / "inception3b", {256, 128, 128, 192, 32, 96, 64})},
        inception4a_(scope_ / "inception4a", {480, 192, 96, 208, 16, 48, 64}),
        inception4bcd_{Inception(scope_ / "inception4b", {512, 160, 112, 224, 24, 64, 64}),
                       Inception(scope_ / "inception4c", {512, 128, 128, 256, 24, 64, 64}),
                       Inception(scope_ / "inception4d", {512, 112, 144, 288, 32, 64, 64})},
        inception4e_(scope_ / "inception4e", {528, 256, 160, 320, 32, 128, 128}),
        inception5_{Inception(scope_ / "inception5a", {832, 256, 160, 320, 32, 128, 128}),
                    Inception(scope_ / "inception5b", {832, 384, 192, 384, 48, 128, 128})},
        aux1_(scope_ / "aux1", 512, options.classes),
        aux2_(scope_ / "aux2", 528, options.classes),
        fc_(scope_ / "fc", 1024, options.classes, {.weight_initializer = initial_weight()}),
        dropout_(dropout_or(options, 0.2)) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    at::Tensor hidden = relu_in_place(ceil_pool(conv1_(inputs), 3));
    hidden = conv3_(relu_in_place(conv2_(hidden)));
    hidden = relu_in_place(ceil_pool(hidden, 3));
    hidden = inception4a_(ceil_pool(inception3_(hidden), 3));
    const at::Tensor early = hidden;
    hidden = inception4bcd_(hidden);
    auxiliary_.clear();
    if (store().training()) {
      auxiliary_ = {{aux1_(early), kAuxiliaryWeight}, {aux2_(hidden), kAuxiliaryWeight}};
    }
    hidden = inception5_(ceil_pool(inception4e_(hidden), 2));
    return fc_(dropout(store(), global_average(hidden), dropout_));
  }

  std::vector<AuxiliaryOutput> auxiliary() const override { return auxiliary_; }

 private:
  Scope scope_;
  NormalizedConv2d conv1_;
  NormalizedConv2d conv2_;
  NormalizedConv2d conv3_;
  Sequential inception3_;
  Inception inception4a_;
  Sequential inception4bcd_;
  Inception inception4e_;
  Sequential inception5_;
  AuxiliaryClassifier aux1_;
  AuxiliaryClassifier aux2_;
  Linear fc_;
  double dropout_;
  std::vector<AuxiliaryOutput> auxiliary_;
};

}  // namespace

std::unique_ptr<Model> make_googlenet(const ModelOptions& options, at::Generator generator) {
  check_options("googlenet", options, 15);
  return std::make_unique<GoogLeNet>(options, std::move(generator));
}

}  // namespace cohort::models
