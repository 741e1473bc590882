#include "models/vgg.h"

#include <array>
#include <string>
#include <utility>

#include "core/error.h"
#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr std::array<std::int64_t, 5> kGroupChannels = {64, 128, 256, 512, 512};
constexpr std::int64_t kVggPooled = 7;

// Convolutions in each of the five groups.
std::array<int, 5> group_sizes(int depth) {
  switch (depth) {
    case 11:
      return {1, 1, 2, 2, 2};
    case 13:
      return {2, 2, 2, 2, 2};
    case 16:
      return {2, 2, 3, 3, 3};
    case 19:
      return {2, 2, 4, 4, 4};
  }
  COHORT_CHECK(false, "VGG has 11, 13, 16 or 19 layers");
  return {};
}

LinearOptions small_normal() {
  return {.weight_initializer = normal(0.01), .bias_initializer = constant(0.0)};
}

// ReLU after the pooling gives the same values and gradients for a quarter of the work, unless it
// comes with the convolution.
at::Tensor pooled_relu(const Conv2d& layer, const at::Tensor& input) {
  if (layer.fuses_relu(input)) return max_pool(layer.relu(input), 2);
  return relu_in_place(max_pool(layer(input), 2));
}

class Vgg final : public Model {
 public:
  Vgg(const ModelOptions& options, at::Generator generator, int depth, bool normalized)
      : Model(std::move(generator)),
        features_(make_features(Scope(store()) / "features", options.channels, depth, normalized)),
        fc1_(Scope(store()) / "classifier" / 0, 512 * kVggPooled * kVggPooled, 4096,
             small_normal()),
        fc2_(Scope(store()) / "classifier" / 3, 4096, 4096, small_normal()),
        fc3_(Scope(store()) / "classifier" / 6, 4096, options.classes, small_normal()),
        dropout_(dropout_or(options, 0.5)) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    at::Tensor hidden =
        flatten_samples(adaptive_average_pool(features_(inputs), kVggPooled, kVggPooled));
    hidden = dropout(store(), relu_in_place(fc1_(hidden)), dropout_);
    hidden = dropout(store(), relu_in_place(fc2_(hidden)), dropout_);
    return fc3_(hidden);
  }

 private:
  static Sequential make_features(const Scope& scope, std::int64_t channels, int depth,
                                  bool normalized) {
    Sequential parts;
    const std::array<int, 5> sizes = group_sizes(depth);
    int index = 0;  // in torchvision's Sequential, where ReLU and pooling count too
    for (std::size_t group = 0; group < sizes.size(); ++group) {
      for (int convolution = 0; convolution < sizes[group]; ++convolution) {
        const std::int64_t out_channels = kGroupChannels[group];
        const Conv2d layer(scope / index++, channels, out_channels, 3,
                           {.padding = 1,
                            .weight_initializer = kaiming_normal_fan_out(),
                            .bias_initializer = constant(0.0)});
        const bool pooled = convolution + 1 == sizes[group];
        if (!normalized) {
          parts.add([layer, pooled](const at::Tensor& input) {
            return pooled ? pooled_relu(layer, input) : layer.relu(input);
          });
        } else {
          parts.add(layer);
          if (pooled) {
            parts.add(BatchNorm2d(scope / index++, out_channels));
            parts.add([](const at::Tensor& input) { return relu_in_place(max_pool(input, 2)); });
          } else {
            add_norm_relu(parts, scope / index++, out_channels);
          }
        }
        ++index;
        channels = out_channels;
      }
      ++index;
    }
    return parts;
  }

  Sequential features_;
  Linear fc1_;
  Linear fc2_;
  Linear fc3_;
  double dropout_;
};

}  // namespace

std::unique_ptr<Model> make_vgg(const ModelOptions& options, at::Generator generator, int depth,
                                bool normalized) {
  check_options("vgg" + std::to_string(depth) + (normalized ? "_bn" : ""), options, 32);
  return std::make_unique<Vgg>(options, std::move(generator), depth, normalized);
}

}  // namespace cohort::models
