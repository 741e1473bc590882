#include "models/cifar_densenet.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr int kBlocks = 3;

struct Shape {
  std::int64_t layers;  // per block
  std::int64_t growth;
};

Shape shape_of(const ModelOptions& options) {
  const std::int64_t depth = options.depth == 0 ? 40 : options.depth;
  const std::int64_t growth = options.growth == 0 ? 12 : options.growth;
  if (depth < 7 || depth % 3 != 1) {
    throw ConfigError("model 'densenet': depth must be 3n + 4 (22, 40, 100, ...), got " +
                      std::to_string(depth));
  }
  if (growth < 1) {
    throw ConfigError("model 'densenet': growth must be at least 1, got " + std::to_string(growth));
  }
  return {(depth - 4) / 3, growth};
}

Conv2dOptions small_convolution(std::int64_t padding) {
  return {.padding = padding, .bias = false, .weight_initializer = kaiming_normal_fan_out()};
}

class SmallDenseLayer {
 public:
  SmallDenseLayer(const Scope& scope, std::int64_t in_channels, std::int64_t growth,
                  double dropout_probability)
      : store_(&scope.store()),
        bn_(scope / "bn1", in_channels),
        conv_(scope / "conv1", in_channels, growth, 3, small_convolution(1)),
        dropout_probability_(dropout_probability) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor added = dropout(*store_, conv_(bn_.relu(input)), dropout_probability_);
    return at::cat({input, added}, 1);
  }

 private:
  ParameterStore* store_;
  BatchNorm2d bn_;
  Conv2d conv_;
  double dropout_probability_;
};

class CifarDenseNet final : public Model {
 public:
  CifarDenseNet(const ModelOptions& options, at::Generator generator, Shape shape)
      : Model(std::move(generator)), features_(make_features(options, shape)) {}

  at::Tensor forward(const at::Tensor& inputs) override { return features_(inputs); }

 private:
  Sequential make_features(const ModelOptions& options, Shape shape) {
    const Scope scope(store());
    Sequential parts;
    std::int64_t channels = 2 * shape.growth;
    parts.add(Conv2d(scope / "conv1", options.channels, channels, 3, small_convolution(1)));
    for (int block = 1; block <= kBlocks; ++block) {
      const Scope dense = scope / ("dense" + std::to_string(block));
      for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        parts.add(SmallDenseLayer(dense / layer, channels, shape.growth, dropout_or(options, 0)));
        channels += shape.growth;
      }
      if (block == kBlocks) break;
      const Scope transition = scope / ("trans" + std::to_string(block));
      add_norm_relu(parts, transition / "bn1", channels);
      // A 1x1 small_convolution and a mean may change places; this way round it has a quarter to
      // do.
      parts.add([](const at::Tensor& input) { return average_pool(input, 2, 2); });
      parts.add(Conv2d(transition / "conv1", channels, channels / 2, 1, small_convolution(0)));
      channels /= 2;
    }
    add_norm_relu(parts, scope / "bn", channels);
    parts.add(global_average);
    parts.add(Linear(scope / "fc", channels, options.classes, {.bias_initializer = constant(0.0)}));
    return parts;
  }

  Sequential features_;
};

}  // namespace

std::unique_ptr<Model> make_cifar_densenet(const ModelOptions& options, at::Generator generator) {
  check_options("densenet", options, 4);
  return std::make_unique<CifarDenseNet>(options, std::move(generator), shape_of(options));
}

}  // namespace cohort::models
