#include "models/initializers.h"

#include <cmath>

namespace cohort::models {

namespace {

std::int64_t kernel_area(const at::Tensor& weight) {
  std::int64_t area = 1;
  for (std::int64_t dimension = 2; dimension < weight.dim(); ++dimension) {
    area *= weight.size(dimension);
  }
  return area;
}

double fan_in(const at::Tensor& weight) {
  return static_cast<double>(weight.size(1) * kernel_area(weight));
}

double fan_out(const at::Tensor& weight) {
  return static_cast<double>(weight.size(0) * kernel_area(weight));
}

double normal_cdf(double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; }

}  // namespace

Initializer constant(double value) {
  return [value](at::Tensor& tensor, at::Generator&) { tensor.fill_(value); };
}

Initializer uniform(double bound) {
  return [bound](at::Tensor& tensor, at::Generator& generator) {
    tensor.uniform_(-bound, bound, generator);
  };
}

Initializer normal(double deviation) {
  return [deviation](at::Tensor& tensor, at::Generator& generator) {
    tensor.normal_(0.0, deviation, generator);
  };
}

Initializer truncated_normal(double deviation, double low, double high) {
  return [=](at::Tensor& tensor, at::Generator& generator) {
    // The inverse of the distribution function, applied to a uniform draw between its values at
    // the two ends.
    const double from = 2.0 * normal_cdf(low / deviation) - 1.0;
    const double to = 2.0 * normal_cdf(high / deviation) - 1.0;
    tensor.uniform_(from, to, generator);
    tensor.erfinv_().mul_(deviation * std::sqrt(2.0)).clamp_(low, high);
  };
}

Initializer kaiming_uniform(double negative_slope) {
  return [negative_slope](at::Tensor& tensor, at::Generator& generator) {
    const double gain_squared = 2.0 / (1.0 + negative_slope * negative_slope);
    const double bound = std::sqrt(3.0 * gain_squared / fan_in(tensor));
    tensor.uniform_(-bound, bound, generator);
  };
}

Initializer kaiming_normal_fan_in() {
  return [](at::Tensor& tensor, at::Generator& generator) {
    tensor.normal_(0.0, std::sqrt(2.0 / fan_in(tensor)), generator);
  };
}

Initializer kaiming_normal_fan_out() {
  return [](at::Tensor& tensor, at::Generator& generator) {
    tensor.normal_(0.0, std::sqrt(2.0 / fan_out(tensor)), generator);
  };
}

Initializer torch_default_weight() { return kaiming_uniform(std::sqrt(5.0)); }

Initializer torch_default_bias(std::int64_t fan_in_of_weight) {
  return uniform(1.0 / std::sqrt(static_cast<double>(fan_in_of_weight)));
}

}  // namespace cohort::models
