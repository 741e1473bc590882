#include "models/layers.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <array>

#include "core/error.h"
#include "models/conv_relu.h"
#include "models/initializers.h"
#include "models/linear_function.h"
#include "models/quick_pool.h"
#include "models/synchronised_batch_norm.h"

namespace cohort::models {

namespace {

using Pair = std::array<std::int64_t, 2>;

Pair both(std::int64_t size) { return {size, size}; }

at::Tensor value_or_none(const Parameter* parameter) {
  return parameter == nullptr ? at::Tensor() : parameter->value;
}

}  // namespace

Conv2d::Conv2d(const Scope& scope, std::int64_t in_channels, std::int64_t out_channels,
               std::int64_t kernel, const Conv2dOptions& options)
    : stride_(options.stride),
      padding_(options.padding),
      dilation_(options.dilation),
      groups_(options.groups) {
  COHORT_CHECK(in_channels % groups_ == 0 && out_channels % groups_ == 0,
               scope.name("weight") + ": groups must divide both channel counts");
  const std::int64_t in_per_group = in_channels / groups_;
  weight_ = scope.store().add_parameter(
      scope.name("weight"), {out_channels, in_per_group, kernel, kernel}, ParameterKind::kWeight,
      options.weight_initializer ? options.weight_initializer : torch_default_weight());
  if (options.bias) {
    bias_ = scope.store().add_parameter(scope.name("bias"), {out_channels}, ParameterKind::kBias,
                                        options.bias_initializer
                                            ? options.bias_initializer
                                            : torch_default_bias(in_per_group * kernel * kernel));
  }
}

at::Tensor Conv2d::operator()(const at::Tensor& input) const {
  // libtorch 1.13 fails on no samples with a weight whose channels are innermost.
  const at::Tensor weight = input.numel() == 0 ? weight_->value.contiguous() : weight_->value;
  return at::conv2d(input, weight, value_or_none(bias_), both(stride_), both(padding_),
                    both(dilation_), groups_);
}

at::Tensor Conv2d::relu(const at::Tensor& input) const {
  if (!fuses_relu(input)) return relu_in_place((*this)(input));
  return conv_relu(input, weight_->value, bias_->value,
                   {both(stride_), both(padding_), both(dilation_), groups_});
}

bool Conv2d::fuses_relu(const at::Tensor& input) const {
  return suits_conv_relu(input, weight_->value, value_or_none(bias_));
}

BatchNorm2d::BatchNorm2d(const Scope& scope, std::int64_t channels, double epsilon, double momentum,
                         double initial_weight)
    : store_(&scope.store()), epsilon_(epsilon), momentum_(momentum) {
  weight_ = store_->add_parameter(scope.name("weight"), {channels}, ParameterKind::kNormalization,
                                  constant(initial_weight));
  bias_ = store_->add_parameter(scope.name("bias"), {channels}, ParameterKind::kNormalization,
                                constant(0.0));
  const at::TensorOptions like = weight_->value.options().requires_grad(false);
  running_mean_ = store_->add_buffer(scope.name("running_mean"), at::zeros({channels}, like));
  running_var_ = store_->add_buffer(scope.name("running_var"), at::ones({channels}, like));
  batches_tracked_ =
      store_->add_buffer(scope.name("num_batches_tracked"), at::zeros({}, like.dtype(at::kLong)));
}

FusedBatchNorm BatchNorm2d::fused(bool relu) const {
  return {.weight = *weight_,
          .bias = *bias_,
          .running_mean = running_mean_->value,
          .running_var = running_var_->value,
          .batches_tracked = batches_tracked_->value,
          .counters = counters_,
          .epsilon = epsilon_,
          .momentum = momentum_,
          .relu = relu};
}

bool BatchNorm2d::fuses(const at::Tensor& input) const {
  return store_->training() && !store_->statistics_sum() && c10::GradMode::is_enabled() &&
         suits_fused_batch_norm(input, fused(false));
}

at::Tensor BatchNorm2d::relu(const at::Tensor& input) const {
  if (fuses(input)) return fused_batch_norm(input, {}, fused(true));
  return relu_in_place((*this)(input));
}

at::Tensor BatchNorm2d::add_relu(const at::Tensor& input, const at::Tensor& shortcut) const {
  if (fuses(input)) return fused_batch_norm(input, shortcut, fused(true));
  return (*this)(input).add_(shortcut).relu_();
}

at::Tensor BatchNorm2d::operator()(const at::Tensor& input) const {
  if (fuses(input)) return fused_batch_norm(input, {}, fused(false));
  if (store_->training() && store_->statistics_sum()) {
    at::Tensor output = synchronised_batch_norm(input, {.weight = weight_->value,
                                                        .bias = bias_->value,
                                                        .running_mean = running_mean_->value,
                                                        .running_var = running_var_->value,
                                                        .epsilon = epsilon_,
                                                        .momentum = momentum_,
                                                        .sum = store_->statistics_sum()});
    batches_tracked_->value.add_(1);
    return output;
  }
  if (store_->training()) {
    // Its variance would be 0 / 0 and poison the running statistics for good.
    if (input.numel() == input.size(1)) {
      throw RunError(
          "batch normalisation cannot train on a single value a channel: the batch has "
          "one sample of 1x1 pixels here; use a larger --batch or --drop-last");
    }
    batches_tracked_->value.add_(1);
  }
  return at::batch_norm(input, weight_->value, bias_->value, running_mean_->value,
                        running_var_->value, store_->training(), momentum_, epsilon_,
                        /*cudnn_enabled=*/true);
}

Linear::Linear(const Scope& scope, std::int64_t in_features, std::int64_t out_features,
               const LinearOptions& options) {
  weight_ = scope.store().add_parameter(
      scope.name("weight"), {out_features, in_features}, ParameterKind::kWeight,
      options.weight_initializer ? options.weight_initializer : torch_default_weight());
  if (options.bias) {
    bias_ = scope.store().add_parameter(
        scope.name("bias"), {out_features}, ParameterKind::kBias,
        options.bias_initializer ? options.bias_initializer : torch_default_bias(in_features));
  }
}

at::Tensor Linear::operator()(const at::Tensor& input) const {
  const bool in_place = c10::GradMode::is_enabled() && weight_->gradient.defined() &&
                        (bias_ == nullptr || bias_->gradient.defined());
  if (in_place) return linear_with_gradient_in_place(input, *weight_, bias_);
  return at::linear(input, weight_->value, value_or_none(bias_));
}

at::Tensor dropout(ParameterStore& store, const at::Tensor& input, double probability) {
  if (!store.training() || probability <= 0) return input;
  COHORT_CHECK(store.generator().defined(), "dropout needs the store's generator");
  const double kept = 1.0 - probability;
  at::Tensor mask = at::empty_like(input, input.options().requires_grad(false));
  mask.bernoulli_(kept, store.generator());
  if (kept > 0) mask.div_(kept);
  return input.mul(mask);
}

at::Tensor relu_in_place(const at::Tensor& input) { return input.relu_(); }

at::Tensor relu6_in_place(const at::Tensor& input) {
  at::Tensor output = input;
  return at::hardtanh_(output, 0, 6);
}

at::Tensor max_pool(const at::Tensor& input, std::int64_t kernel, const PoolOptions& options) {
  const bool plain = kernel == 2 && options.stride == 2 && options.padding == 0;
  if (plain && !options.ceil_mode && suits_quick_pool(input)) return quick_max_pool(input);
  return at::max_pool2d(input, both(kernel), both(options.stride), both(options.padding), both(1),
                        options.ceil_mode);
}

at::Tensor average_pool(const at::Tensor& input, std::int64_t kernel, std::int64_t stride) {
  return at::avg_pool2d(input, both(kernel), both(stride));
}

at::Tensor adaptive_average_pool(const at::Tensor& input, std::int64_t height, std::int64_t width) {
  return at::adaptive_avg_pool2d(input, Pair{height, width});
}

at::Tensor global_average(const at::Tensor& input) {
  return flatten_samples(adaptive_average_pool(input, 1, 1));
}

at::Tensor flatten_samples(const at::Tensor& input) { return input.flatten(1); }

void add_norm_relu(Sequential& parts, const Scope& norm, std::int64_t channels) {
  parts.add(
      [layer = BatchNorm2d(norm, channels)](const at::Tensor& input) { return layer.relu(input); });
}

at::Tensor Sequential::operator()(const at::Tensor& input) const {
  at::Tensor output = input;
  for (const Part& part : parts_) output = part(output);
  return output;
}

}  // namespace cohort::models
