#include "models/mobilenet_v2.h"

#include <array>
#include <utility>

#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

struct Stage {
  std::int64_t expansion, channels, blocks, stride;
};
constexpr std::array<Stage, 7> kStages = {{{1, 16, 1, 1},
                                           {6, 24, 2, 2},
                                           {6, 32, 3, 2},
                                           {6, 64, 4, 2},
                                           {6, 96, 3, 1},
                                           {6, 160, 3, 2},
                                           {6, 320, 1, 1}}};
constexpr std::int64_t kMobileNetStem = 32;
constexpr std::int64_t kLastChannels = 1280;

Conv2dOptions mobile_convolution(std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  return {.stride = stride,
          .padding = kernel / 2,
          .groups = groups,
          .bias = false,
          .weight_initializer = kaiming_normal_fan_out()};
}

struct ConvolutionShape {
  std::int64_t in, out, kernel;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
};

Sequential normalized_convolution(const Scope& scope, const ConvolutionShape& shape) {
  return {Conv2d(scope / 0, shape.in, shape.out, shape.kernel,
                 mobile_convolution(shape.kernel, shape.stride, shape.groups)),
          BatchNorm2d(scope / 1, shape.out), relu6_in_place};
}

class InvertedResidual {
 public:
  InvertedResidual(const Scope& scope, std::int64_t in_channels, std::int64_t out_channels,
                   std::int64_t stride, std::int64_t expansion)
      : keeps_shape_(stride == 1 && in_channels == out_channels) {
    const Scope conv = scope / "conv";
    const std::int64_t hidden = in_channels * expansion;
    int index = 0;
    if (expansion != 1) {
      branch_.add(normalized_convolution(conv / index++, {in_channels, hidden, 1}));
    }
    branch_.add(normalized_convolution(conv / index++, {hidden, hidden, 3, stride, hidden}));
    branch_.add(Conv2d(conv / index++, hidden, out_channels, 1, mobile_convolution(1, 1, 1)));
    branch_.add(BatchNorm2d(conv / index, out_channels));
  }

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor output = branch_(input);
    return keeps_shape_ ? output.add_(input) : output;
  }

 private:
  Sequential branch_;
  bool keeps_shape_;
};

class MobileNetV2 final : public Model {
 public:
  MobileNetV2(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        features_(make_features(Scope(store()) / "features", options.channels)),
        classifier_(Scope(store()) / "classifier" / 1, kLastChannels, options.classes,
                    {.weight_initializer = normal(0.01), .bias_initializer = constant(0.0)}),
        dropout_(dropout_or(options, 0.2)) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return classifier_(dropout(store(), global_average(features_(inputs)), dropout_));
  }

 private:
  static Sequential make_features(const Scope& scope, std::int64_t image_channels) {
    Sequential parts;
    int index = 0;
    parts.add(normalized_convolution(scope / index++, {image_channels, kMobileNetStem, 3, 2}));
    std::int64_t channels = kMobileNetStem;
    for (const Stage& stage : kStages) {
      for (std::int64_t block = 0; block < stage.blocks; ++block) {
        parts.add(InvertedResidual(scope / index++, channels, stage.channels,
                                   block == 0 ? stage.stride : 1, stage.expansion));
        channels = stage.channels;
      }
    }
    parts.add(normalized_convolution(scope / index, {channels, kLastChannels, 1}));
    return parts;
  }

  Sequential features_;
  Linear classifier_;
  double dropout_;
};

}  // namespace

std::unique_ptr<Model> make_mobilenet_v2(const ModelOptions& options, at::Generator generator) {
  check_options("mobilenet_v2", options);
  return std::make_unique<MobileNetV2>(options, std::move(generator));
}

}  // namespace cohort::models
