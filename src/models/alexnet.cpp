#include "models/alexnet.h"

#include <utility>

#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr std::int64_t kAlexnetPooled = 6;

at::Tensor pool_and_relu(const at::Tensor& input) {
  // ReLU after the pooling gives the same values and gradients for a quarter of the work.
  return relu_in_place(max_pool(input, 3));
}

class AlexNet final : public Model {
 public:
  AlexNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        features_(make_features(Scope(store()) / "features", options.channels)),
        fc1_(Scope(store()) / "classifier" / 1, 256 * kAlexnetPooled * kAlexnetPooled, 4096),
        fc2_(Scope(store()) / "classifier" / 4, 4096, 4096),
        fc3_(Scope(store()) / "classifier" / 6, 4096, options.classes),
        dropout_(dropout_or(options, 0.5)) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    at::Tensor hidden =
        flatten_samples(adaptive_average_pool(features_(inputs), kAlexnetPooled, kAlexnetPooled));
    hidden = relu_in_place(fc1_(dropout(store(), hidden, dropout_)));
    hidden = relu_in_place(fc2_(dropout(store(), hidden, dropout_)));
    return fc3_(hidden);
  }

 private:
  static Sequential make_features(const Scope& scope, std::int64_t channels) {
    return {Conv2d(scope / 0, channels, 64, 11, {.stride = 4, .padding = 2}),
            pool_and_relu,
            Conv2d(scope / 3, 64, 192, 5, {.padding = 2}),
            pool_and_relu,
            Conv2d(scope / 6, 192, 384, 3, {.padding = 1}),
            relu_in_place,
            Conv2d(scope / 8, 384, 256, 3, {.padding = 1}),
            relu_in_place,
            Conv2d(scope / 10, 256, 256, 3, {.padding = 1}),
            pool_and_relu};
  }

  Sequential features_;
  Linear fc1_;
  Linear fc2_;
  Linear fc3_;
  double dropout_;
};

}  // namespace

std::unique_ptr<Model> make_alexnet(const ModelOptions& options, at::Generator generator) {
  check_options("alexnet", options, 63);
  return std::make_unique<AlexNet>(options, std::move(generator));
}

}  // namespace cohort::models
