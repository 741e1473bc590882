#include "models/squeezenet.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>

#include <utility>

#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

Conv2dOptions squeeze_convolution(std::int64_t stride, std::int64_t padding) {
  return {.stride = stride,
          .padding = padding,
          .weight_initializer = kaiming_uniform(0),
          .bias_initializer = constant(0.0)};
}

at::Tensor pool(const at::Tensor& input) {
  return max_pool(input, 3, {.stride = 2, .ceil_mode = true});
}

class Fire {
 public:
  // Half of the `out_channels` come from 1x1, half from 3x3 convolutions.
  Fire(const Scope& scope, std::int64_t in_channels, std::int64_t squeezed,
       std::int64_t out_channels)
      : squeeze_(scope / "squeeze", in_channels, squeezed, 1, squeeze_convolution(1, 0)),
        expand1_(scope / "expand1x1", squeezed, out_channels / 2, 1, squeeze_convolution(1, 0)),
        expand3_(scope / "expand3x3", squeezed, out_channels / 2, 3, squeeze_convolution(1, 1)) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor squeezed = relu_in_place(squeeze_(input));
    return relu_in_place(at::cat({expand1_(squeezed), expand3_(squeezed)}, 1));
  }

 private:
  Conv2d squeeze_;
  Conv2d expand1_;
  Conv2d expand3_;
};

class SqueezeNet final : public Model {
 public:
  SqueezeNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        features_(make_features(Scope(store()) / "features", options.channels)),
        classifier_(Scope(store()) / "classifier" / 1, 512, options.classes, 1,
                    {.weight_initializer = normal(0.01), .bias_initializer = constant(0.0)}),
        dropout_(dropout_or(options, 0.5)) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    const at::Tensor features = dropout(store(), features_(inputs), dropout_);
    return global_average(relu_in_place(classifier_(features)));
  }

 private:
  static Sequential make_features(const Scope& scope, std::int64_t channels) {
    return {Conv2d(scope / 0, channels, 96, 7, squeeze_convolution(2, 0)),
            pool,
            relu_in_place,
            Fire(scope / 3, 96, 16, 128),
            Fire(scope / 4, 128, 16, 128),
            Fire(scope / 5, 128, 32, 256),
            pool,
            Fire(scope / 7, 256, 32, 256),
            Fire(scope / 8, 256, 48, 384),
            Fire(scope / 9, 384, 48, 384),
            Fire(scope / 10, 384, 64, 512),
            pool,
            Fire(scope / 12, 512, 64, 512)};
  }

  Sequential features_;
  Conv2d classifier_;
  double dropout_;
};

}  // namespace

std::unique_ptr<Model> make_squeezenet(const ModelOptions& options, at::Generator generator) {
  check_options("squeezenet1_0", options, 21);
  return std::make_unique<SqueezeNet>(options, std::move(generator));
}

}  // namespace cohort::models
