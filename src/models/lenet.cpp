#include "models/lenet.h"

#include <algorithm>
#include <utility>

#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

std::int64_t padding_for(const ModelOptions& options) {
  return std::min(options.height, options.width) < 32 ? 2 : 0;
}

std::int64_t size_after_convolutions(std::int64_t size, std::int64_t padding) {
  const std::int64_t after_first = (size + 2 * padding - 4) / 2;
  const std::int64_t after_second = (after_first - 4) / 2;
  return after_second - 4;
}

std::int64_t features_after_convolutions(const ModelOptions& options) {
  const std::int64_t padding = padding_for(options);
  return 120 * size_after_convolutions(options.height, padding) *
         size_after_convolutions(options.width, padding);
}

class LeNet final : public Model {
 public:
  LeNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        conv1_(Scope(store()) / "conv1", options.channels, 6, 5, {.padding = padding_for(options)}),
        conv2_(Scope(store()) / "conv2", 6, 16, 5),
        conv3_(Scope(store()) / "conv3", 16, 120, 5),
        fc1_(Scope(store()) / "fc1", features_after_convolutions(options), 84),
        fc2_(Scope(store()) / "fc2", 84, options.classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    at::Tensor hidden = relu_in_place(max_pool(conv1_(inputs), 2));
    hidden = relu_in_place(max_pool(conv2_(hidden), 2));
    hidden = relu_in_place(conv3_(hidden));
    return fc2_(relu_in_place(fc1_(flatten_samples(hidden))));
  }

 private:
  Conv2d conv1_;
  Conv2d conv2_;
  Conv2d conv3_;
  Linear fc1_;
  Linear fc2_;
};

}  // namespace

std::unique_ptr<Model> make_lenet(const ModelOptions& options, at::Generator generator) {
  check_options("lenet", options, 28);
  return std::make_unique<LeNet>(options, std::move(generator));
}

}  // namespace cohort::models
