#include "models/residual_block.h"

#include <string>
#include <utility>

namespace cohort::models {

namespace {

// Adds the convolution, bn<number> and ReLU.
void add_convolution(Sequential& branch, const Scope& scope, int number, const Conv2d& convolution,
                     std::int64_t out_channels) {
  branch.add(convolution);
  add_norm_relu(branch, scope / ("bn" + std::to_string(number)), out_channels);
}

}  // namespace

SqueezeExcitation::SqueezeExcitation(const Scope& scope, std::int64_t channels,
                                     std::int64_t reduction, const Initializer& weight_initializer)
    : fc1_(scope / "fc1", channels, channels / reduction, 1,
           {.weight_initializer = weight_initializer}),
      fc2_(scope / "fc2", channels / reduction, channels, 1,
           {.weight_initializer = weight_initializer}) {}

at::Tensor SqueezeExcitation::operator()(const at::Tensor& input) const {
  const at::Tensor means = adaptive_average_pool(input, 1, 1);
  return input.mul(fc2_(relu_in_place(fc1_(means))).sigmoid_());
}

ResidualBlock::ResidualBlock(const Scope& scope, std::int64_t in_channels, std::int64_t planes,
                             std::int64_t stride, const ResidualBlockOptions& options) {
  const Initializer& initializer = options.convolution_initializer;
  const std::int64_t out = out_channels(planes, options);
  if (options.bottleneck) {
    const std::int64_t width = planes * options.base_width / 64 * options.groups;
    const Conv2dOptions pointwise = {.bias = false, .weight_initializer = initializer};
    add_convolution(branch_, scope, 1, Conv2d(scope / "conv1", in_channels, width, 1, pointwise),
                    width);
    add_convolution(branch_, scope, 2,
                    Conv2d(scope / "conv2", width, width, 3,
                           {.stride = stride,
                            .padding = 1,
                            .groups = options.groups,
                            .bias = false,
                            .weight_initializer = initializer}),
                    width);
    branch_.add(Conv2d(scope / "conv3", width, out, 1, pointwise));
  } else {
    Conv2dOptions spatial = {
        .stride = stride, .padding = 1, .bias = false, .weight_initializer = initializer};
    add_convolution(branch_, scope, 1, Conv2d(scope / "conv1", in_channels, planes, 3, spatial),
                    planes);
    spatial.stride = 1;
    branch_.add(Conv2d(scope / "conv2", planes, planes, 3, spatial));
  }
  last_norm_.emplace(scope / (options.bottleneck ? "bn3" : "bn2"), out, 1e-5, 0.1,
                     options.last_norm_weight);
  if (options.squeeze_excitation > 0) {
    gate_.emplace(scope / "se", out, options.squeeze_excitation, initializer);
  }
  if (stride != 1 || in_channels != out) {
    shortcut_.add(Conv2d(scope / "downsample" / 0, in_channels, out, 1,
                         {.stride = stride, .bias = false, .weight_initializer = initializer}));
    shortcut_.add(BatchNorm2d(scope / "downsample" / 1, out));
  }
}

at::Tensor ResidualBlock::operator()(const at::Tensor& input) const {
  const at::Tensor output = branch_(input);
  // An empty shortcut gives the input itself.
  if (!gate_) return last_norm_->add_relu(output, shortcut_(input));
  return (*gate_)((*last_norm_)(output)).add_(shortcut_(input)).relu_();
}

Sequential residual_stage(const Scope& scope, std::int64_t& channels, std::int64_t planes,
                          std::int64_t count, std::int64_t stride,
                          const ResidualBlockOptions& options) {
  Sequential stage;
  for (std::int64_t index = 0; index < count; ++index) {
    stage.add(ResidualBlock(scope / index, channels, planes, index == 0 ? stride : 1, options));
    channels = ResidualBlock::out_channels(planes, options);
  }
  return stage;
}

}  // namespace cohort::models
