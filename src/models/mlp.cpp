#include "models/mlp.h"

#include <utility>

#include "models/initializers.h"
#include "models/layers.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

std::int64_t inputs_per_sample(const ModelOptions& options) {
  return options.channels * options.height * options.width;
}

LinearOptions standard_normal() {
  return {.weight_initializer = normal(1.0), .bias_initializer = constant(0.0)};
}

class Mlp100 final : public Model {
 public:
  Mlp100(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        fc1_(Scope(store()) / "fc1", inputs_per_sample(options), 100, standard_normal()),
        fc2_(Scope(store()) / "fc2", 100, options.classes, standard_normal()) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return fc2_(fc1_(flatten_samples(inputs)).sigmoid_());
  }

 private:
  Linear fc1_;
  Linear fc2_;
};

class Mlp4096 final : public Model {
 public:
  Mlp4096(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        fc1_(Scope(store()) / "fc1", inputs_per_sample(options), 4096),
        fc2_(Scope(store()) / "fc2", 4096, 4096),
        fc3_(Scope(store()) / "fc3", 4096, options.classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    const at::Tensor hidden = relu_in_place(fc1_(flatten_samples(inputs)));
    return fc3_(relu_in_place(fc2_(hidden)));
  }

 private:
  Linear fc1_;
  Linear fc2_;
  Linear fc3_;
};

}  // namespace

std::unique_ptr<Model> make_mlp_100(const ModelOptions& options, at::Generator generator) {
  check_options("mlp-100", options);
  return std::make_unique<Mlp100>(options, std::move(generator));
}

std::unique_ptr<Model> make_mlp_4096(const ModelOptions& options, at::Generator generator) {
  check_options("mlp-4096", options);
  return std::make_unique<Mlp4096>(options, std::move(generator));
}

}  // namespace cohort::models
