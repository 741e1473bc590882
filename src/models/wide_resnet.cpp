#include "models/wide_resnet.h"

#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr std::int64_t kWideResnetStem = 16;

std::int64_t widen_of(const ModelOptions& options) {
  return options.widen == 0 ? 4 : options.widen;
}

std::int64_t depth_of(const ModelOptions& options) {
  return options.depth == 0 ? 28 : options.depth;
}

Conv2dOptions wide_convolution(std::int64_t stride, std::int64_t padding) {
  return {.stride = stride,
          .padding = padding,
          .bias = false,
          .weight_initializer = kaiming_normal_fan_out()};
}

class PreActivationBlock {
 public:
  PreActivationBlock(const Scope& scope, std::int64_t in_channels, std::int64_t out_channels,
                     std::int64_t stride, double dropout_probability)
      : store_(&scope.store()),
        bn1_(scope / "bn1", in_channels),
        conv1_(scope / "conv1", in_channels, out_channels, 3, wide_convolution(stride, 1)),
        bn2_(scope / "bn2", out_channels),
        conv2_(scope / "conv2", out_channels, out_channels, 3, wide_convolution(1, 1)),
        dropout_probability_(dropout_probability) {
    if (stride != 1 || in_channels != out_channels) {
      shortcut_.emplace(scope / "shortcut", in_channels, out_channels, 1,
                        wide_convolution(stride, 0));
    }
  }

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor active = bn1_.relu(input);
    const at::Tensor hidden = bn2_.relu(conv1_(active));
    const at::Tensor output = conv2_(dropout(*store_, hidden, dropout_probability_));
    return output.add_(shortcut_ ? (*shortcut_)(active) : input);
  }

 private:
  ParameterStore* store_;
  BatchNorm2d bn1_;
  Conv2d conv1_;
  BatchNorm2d bn2_;
  Conv2d conv2_;
  std::optional<Conv2d> shortcut_;
  double dropout_probability_;
};

class WideResNet final : public Model {
 public:
  WideResNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        conv1_(Scope(store()) / "conv1", options.channels, kWideResnetStem, 3,
               wide_convolution(1, 1)),
        stages_(make_stages(Scope(store()), options)),
        bn_(Scope(store()) / "bn", 64 * widen_of(options)),
        fc_(Scope(store()) / "fc", 64 * widen_of(options), options.classes,
            {.bias_initializer = constant(0.0)}) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return fc_(global_average(bn_.relu(stages_(conv1_(inputs)))));
  }

 private:
  static Sequential make_stages(const Scope& scope, const ModelOptions& options) {
    Sequential stages;
    const std::int64_t blocks = (depth_of(options) - 4) / 6;
    std::int64_t channels = kWideResnetStem;
    for (std::int64_t stage = 0; stage < 3; ++stage) {
      const std::int64_t width = (kWideResnetStem << stage) * widen_of(options);
      const Scope stage_scope = scope / ("layer" + std::to_string(stage + 1));
      for (std::int64_t block = 0; block < blocks; ++block) {
        stages.add(PreActivationBlock(stage_scope / block, channels, width,
                                      stage > 0 && block == 0 ? 2 : 1, dropout_or(options, 0)));
        channels = width;
      }
    }
    return stages;
  }

  Conv2d conv1_;
  Sequential stages_;
  BatchNorm2d bn_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> make_wide_resnet(const ModelOptions& options, at::Generator generator) {
  check_options("wideresnet", options);
  const std::int64_t depth = depth_of(options);
  if (depth < 10 || depth % 6 != 4) {
    throw ConfigError("model 'wideresnet': depth must be 6n + 4 (10, 16, 22, 28, 40, ...), got " +
                      std::to_string(depth));
  }
  if (widen_of(options) < 1) {
    throw ConfigError("model 'wideresnet': the widening factor must be at least 1, got " +
                      std::to_string(options.widen));
  }
  return std::make_unique<WideResNet>(options, std::move(generator));
}

}  // namespace cohort::models
