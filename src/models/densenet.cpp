#include "models/densenet.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>

#include <array>
#include <string>
#include <utility>

#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4 * kGrowth;
constexpr std::int64_t kDensenetStem = 64;
constexpr std::array<int, 4> kLayers = {6, 12, 24, 16};

Conv2dOptions dense_convolution(std::int64_t stride, std::int64_t padding) {
  return {.stride = stride,
          .padding = padding,
          .bias = false,
          .weight_initializer = kaiming_normal_fan_in()};
}

class DenseLayer {
 public:
  DenseLayer(const Scope& scope, std::int64_t in_channels, double dropout_probability)
      : store_(&scope.store()),
        norm1_(scope / "norm1", in_channels),
        conv1_(scope / "conv1", in_channels, kBottleneck, 1, dense_convolution(1, 0)),
        norm2_(scope / "norm2", kBottleneck),
        conv2_(scope / "conv2", kBottleneck, kGrowth, 3, dense_convolution(1, 1)),
        dropout_probability_(dropout_probability) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor hidden = conv1_(norm1_.relu(input));
    const at::Tensor added = conv2_(norm2_.relu(hidden));
    return at::cat({input, dropout(*store_, added, dropout_probability_)}, 1);
  }

 private:
  ParameterStore* store_;
  BatchNorm2d norm1_;
  Conv2d conv1_;
  BatchNorm2d norm2_;
  Conv2d conv2_;
  double dropout_probability_;
};

class DenseNet final : public Model {
 public:
  DenseNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)), layers_(make_layers(options)) {}

  at::Tensor forward(const at::Tensor& inputs) override { return layers_(inputs); }

 private:
  Sequential make_layers(const ModelOptions& options) {
    const Scope features = Scope(store()) / "features";
    Sequential parts;
    parts.add(
        Conv2d(features / "conv0", options.channels, kDensenetStem, 7, dense_convolution(2, 3)));
    parts.add(BatchNorm2d(features / "norm0", kDensenetStem));
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    parts.add([](const at::Tensor& input) {
      return relu_in_place(max_pool(input, 3, {.stride = 2, .padding = 1}));
    });
    std::int64_t channels = kDensenetStem;
    for (std::size_t block = 0; block < kLayers.size(); ++block) {
      const std::string number = std::to_string(block + 1);
      for (int layer = 1; layer <= kLayers[block]; ++layer) {
        const Scope scope =
            features / ("denseblock" + number) / ("denselayer" + std::to_string(layer));
        parts.add(DenseLayer(scope, channels, dropout_or(options, 0)));
        channels += kGrowth;
      }
      if (block + 1 == kLayers.size()) break;
      add_transition(parts, features / ("transition" + number), channels);
      channels /= 2;
    }
    add_norm_relu(parts, features / "norm5", channels);
    parts.add(global_average);
    parts.add(Linear(Scope(store()) / "classifier", channels, options.classes,
                     {.bias_initializer = constant(0.0)}));
    return parts;
  }

  static void add_transition(Sequential& parts, const Scope& scope, std::int64_t channels) {
    add_norm_relu(parts, scope / "norm", channels);
    // A 1x1 dense_convolution and a mean may change places; this way round it has a quarter to do.
    parts.add([](const at::Tensor& input) { return average_pool(input, 2, 2); });
    parts.add(Conv2d(scope / "conv", channels, channels / 2, 1, dense_convolution(1, 0)));
  }

  Sequential layers_;
};

}  // namespace

std::unique_ptr<Model> make_densenet121(const ModelOptions& options, at::Generator generator) {
  check_options("densenet121", options, 29);
  return std::make_unique<DenseNet>(options, std::move(generator));
}

}  // namespace cohort::models
