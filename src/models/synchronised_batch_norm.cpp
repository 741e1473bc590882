#include "models/synchronised_batch_norm.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cstdint>

#include "core/error.h"

namespace cohort::models {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kSum = "sum";
constexpr const char* kEpsilon = "epsilon";

struct GroupStatistics {
  at::Tensor mean;
  at::Tensor variance;  // biased
  at::Tensor count;     // at least 1, one element
};

// This rank's part of the sums, in the order: C sums, C sums of squares, the count.
at::Tensor own_part(const at::Tensor& values, const at::Tensor& shift) {
  const std::int64_t channels = values.size(1);
  at::Tensor part = at::zeros({2 * channels + 1}, shift.options());
  if (values.numel() == 0) return part;
  const std::int64_t count = values.numel() / channels;
  const auto [mean, variance] = at::batch_norm_update_stats(values, {}, {}, /*momentum=*/0);
  const at::Tensor offset = mean.sub(shift);
  part.narrow(0, 0, channels).copy_(offset).mul_(count);
  part.narrow(0, channels, channels).copy_(variance).addcmul_(offset, offset).mul_(count);
  part.narrow(0, 2 * channels, 1).fill_(count);
  return part;
}

GroupStatistics sum_over_ranks(const at::Tensor& values, const SynchronisedBatchNorm& options) {
  const std::int64_t channels = values.size(1);
  at::Tensor sums = own_part(values, options.running_mean);
  options.sum(sums);
  const at::Tensor total = sums.narrow(0, 2 * channels, 1);
  bool any = true;
  // Only who has at most one value can be in a group of one value or none. The others need not read
  // the total, which would make the host wait for the GPU.
  if (values.numel() <= channels) {
    const float values_in_all = total.item<float>();
    if (values_in_all == 1) {
      throw RunError(
          "batch normalisation cannot train on a single value a channel: the batch of all workers "
          "together has one sample of 1x1 pixels here; use a larger --batch or --drop-last");
    }
    any = values_in_all > 0;
  }
  GroupStatistics group;
  group.count = total.clamp_min(1);
  const at::Tensor offset = sums.narrow(0, 0, channels).div(group.count);
  group.mean = options.running_mean.add(offset);
  group.variance = sums.narrow(0, channels, channels)
                       .div(group.count)
                       .addcmul_(offset, offset, -1)
                       .clamp_min_(0);  // rounding may leave less
  if (any) {
    const at::Tensor unbiased =
        group.variance.mul(group.count).div_(group.count.sub(1).clamp_min_(1));
    options.running_mean.lerp_(group.mean, options.momentum);
    options.running_var.lerp_(unbiased, options.momentum);
  }
  return group;
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift, in one pass.
at::Tensor normalise(const at::Tensor& values, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon) {
  if (values.numel() == 0) return at::empty_like(values);
  return at::batch_norm(values, scale, shift, mean, variance, /*training=*/false, /*momentum=*/0,
                        epsilon, /*cudnn_enabled=*/true);
}

struct SynchronisedFunction : public torch::autograd::Function<SynchronisedFunction> {
  static Variable forward(AutogradContext* context, const Variable& input, const Variable& weight,
                          const Variable& bias, const SynchronisedBatchNorm* options) {
    // Under autocasting the input may be of lower precision than the statistics.
    const at::Tensor values = input.to(at::kFloat);
    const GroupStatistics group = sum_over_ranks(values, *options);
    context->save_for_backward({input, weight, group.mean, group.variance, group.count});
    // The context can keep integers across the passes, but no pointers.
    context->saved_data[kSum] =
        static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&options->sum));
    context->saved_data[kEpsilon] = options->epsilon;
    return normalise(values, weight, bias, group.mean, group.variance, options->epsilon)
        .to(input.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor& mean = saved[2];
    const at::Tensor& variance = saved[3];
    const auto& sum = *reinterpret_cast<const StatisticsSum*>(
        static_cast<std::intptr_t>(context->saved_data[kSum].toInt()));
    const double epsilon = context->saved_data[kEpsilon].toDouble();
    const at::Tensor values = saved[0].to(at::kFloat);
    const at::Tensor output_gradient =
        gradients[0].to(at::kFloat).contiguous(values.suggest_memory_format());

    const std::int64_t channels = values.size(1);
    at::Tensor weight_gradient = at::zeros({channels}, mean.options());  // sum of dy * x_hat
    at::Tensor bias_gradient = at::zeros({channels}, mean.options());    // sum of dy
    if (values.numel() > 0) {
      // In evaluation mode it takes the statistics it is given: here the group's. Some of its
      // kernels read them as running ones, some as saved ones.
      const at::Tensor inverse_deviation = variance.add(epsilon).rsqrt_();
      auto [unused, scale, shift] = at::native_batch_norm_backward(
          output_gradient, values, weight, mean, variance, mean, inverse_deviation,
          /*train=*/false, epsilon, std::array<bool, 3>{false, true, true});
      weight_gradient = scale;
      bias_gradient = shift;
    }
    at::Tensor sums = at::cat({weight_gradient, bias_gradient});
    sum(sums);

    // dx = a (dy - mean(dy) - x_hat mean(dy x_hat)), a = weight / sqrt(variance + epsilon)
    const at::Tensor a = variance.add(epsilon).rsqrt_().mul_(weight);
    const at::Tensor minus_means = sums.div_(saved[4]).view({2, channels}).mul_(a).neg_();
    at::Tensor input_gradient =
        normalise(values, minus_means[0], minus_means[1], mean, variance, epsilon);
    input_gradient.addcmul_(output_gradient, a.view({1, channels, 1, 1}));
    return {input_gradient.to(saved[0].scalar_type()), weight_gradient, bias_gradient, Variable()};
  }
};

}  // namespace

at::Tensor synchronised_batch_norm(const at::Tensor& input, const SynchronisedBatchNorm& options) {
  return SynchronisedFunction::apply(input, options.weight, options.bias, &options);
}

}  // namespace cohort::models
