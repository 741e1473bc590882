#include "models/mnistnet.h"

#include <utility>

#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr std::int64_t kMinimumSize = 16;

std::int64_t size_after_convolutions(std::int64_t size) { return ((size - 4) / 2 - 4) / 2; }

class MnistNet final : public Model {
 public:
  MnistNet(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        conv1_(Scope(store()) / "conv1", options.channels, 20, 5),
        conv2_(Scope(store()) / "conv2", 20, 50, 5),
        fc1_(Scope(store()) / "fc1",
             50 * size_after_convolutions(options.height) * size_after_convolutions(options.width),
             500),
        fc2_(Scope(store()) / "fc2", 500, options.classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    at::Tensor hidden = relu_in_place(max_pool(conv1_(inputs), 2));
    hidden = relu_in_place(max_pool(conv2_(hidden), 2));
    return fc2_(relu_in_place(fc1_(flatten_samples(hidden))));
  }

 private:
  Conv2d conv1_;
  Conv2d conv2_;
  Linear fc1_;
  Linear fc2_;
};

}  // namespace

std::unique_ptr<Model> make_mnistnet(const ModelOptions& options, at::Generator generator) {
  check_options("mnistnet", options, kMinimumSize);
  return std::make_unique<MnistNet>(options, std::move(generator));
}

std::unique_ptr<Model> make_cifar10net(const ModelOptions& options, at::Generator generator) {
  check_options("cifar10net", options, kMinimumSize);
  return std::make_unique<MnistNet>(options, std::move(generator));
}

}  // namespace cohort::models
