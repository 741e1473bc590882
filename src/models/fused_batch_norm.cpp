#include "models/fused_batch_norm.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/batch_norm.h"
#include "models/saved_parameter.h"

namespace cohort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kScale = "weight";
constexpr const char* kShift = "bias";
constexpr const char* kRelu = "relu";
constexpr const char* kHasShortcut = "has_shortcut";

kernels::BatchNormShape batch_norm_shape(const at::Tensor& input) {
  return {.rows = input.numel() / input.size(1),
          .channels = static_cast<int>(input.size(1)),
          .element = input.scalar_type() == at::kFloat ? kernels::Element::kFloat
                                                       : kernels::Element::kBFloat16};
}

at::Tensor floats_like(std::int64_t size, const at::Tensor& like) {
  return at::empty({size}, at::TensorOptions().dtype(at::kFloat).device(like.device()));
}

struct FusedBatchNormFunction : public torch::autograd::Function<FusedBatchNormFunction> {
  // The values are arguments of their own so that the output is known to depend on them. Without a
  // shortcut, `shortcut` is ignored; an undefined tensor cannot be an argument.
  static Variable forward(AutogradContext* context, const Variable& input, const Variable& shortcut,
                          const Variable& /*weight*/, const Variable& /*bias*/, bool has_shortcut,
                          const FusedBatchNorm* options) {
    const kernels::BatchNormShape shape = batch_norm_shape(input);
    at::Tensor output = at::empty_like(input);
    const at::Tensor mean = floats_like(shape.channels, input);
    const at::Tensor inverse_deviation = floats_like(shape.channels, input);
    const at::Tensor scratch = floats_like(kernels::batch_norm_scratch_floats(shape), input);
    at::Tensor positive;
    if (has_shortcut && options->relu) {
      positive =
          at::empty({kernels::batch_norm_mask_bytes(shape)}, input.options().dtype(at::kByte));
    }
    kernels::batch_norm_forward(
        shape,
        {.input = input.data_ptr(),
         .shortcut = has_shortcut ? shortcut.data_ptr() : nullptr,
         .output = output.data_ptr(),
         .relu = options->relu,
         .positive = positive.defined() ? positive.data_ptr<std::uint8_t>() : nullptr,
         .weight = options->weight.value.data_ptr<float>(),
         .bias = options->bias.value.data_ptr<float>(),
         .epsilon = static_cast<float>(options->epsilon),
         .momentum = static_cast<float>(options->momentum),
         .running_mean = options->running_mean.data_ptr<float>(),
         .running_variance = options->running_var.data_ptr<float>(),
         .batches = options->batches_tracked.data_ptr<std::int64_t>(),
         .mean = mean.data_ptr<float>(),
         .inverse_deviation = inverse_deviation.data_ptr<float>()},
        {scratch.data_ptr<float>(), reinterpret_cast<unsigned*>(options->counters.data_ptr<int>())},
        c10::cuda::getCurrentCUDAStream(input.device().index()).stream());
    variable_list saved = {input, mean, inverse_deviation, options->counters};
    if (positive.defined()) saved.push_back(positive);
    context->save_for_backward(saved);
    context->saved_data[kScale] = to_integer(&options->weight);
    context->saved_data[kShift] = to_integer(&options->bias);
    context->saved_data[kRelu] = options->relu;
    context->saved_data[kHasShortcut] = has_shortcut;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const bool has_shortcut = context->saved_data[kHasShortcut].toBool();
    Parameter& weight = *to_parameter(context->saved_data[kScale]);
    Parameter& bias = *to_parameter(context->saved_data[kShift]);
    const at::Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const kernels::BatchNormShape shape = batch_norm_shape(input);
    at::Tensor input_gradient = at::empty_like(input);
    at::Tensor shortcut_gradient = has_shortcut ? at::empty_like(input) : at::Tensor();
    const at::Tensor scratch = floats_like(kernels::batch_norm_scratch_floats(shape), input);
    kernels::batch_norm_backward(
        shape,
        {.output_gradient = gradient.data_ptr(),
         .input = input.data_ptr(),
         .positive = saved.size() > 4 ? saved[4].data_ptr<std::uint8_t>() : nullptr,
         .relu = context->saved_data[kRelu].toBool(),
         .weight = weight.value.data_ptr<float>(),
         .bias = bias.value.data_ptr<float>(),
         .mean = saved[1].data_ptr<float>(),
         .inverse_deviation = saved[2].data_ptr<float>(),
         .input_gradient = input_gradient.data_ptr(),
         .shortcut_gradient = has_shortcut ? shortcut_gradient.data_ptr() : nullptr,
         .weight_gradient = weight.gradient.data_ptr<float>(),
         .bias_gradient = bias.gradient.data_ptr<float>(),
         .accumulate = weight.accumulate},
        {scratch.data_ptr<float>(), reinterpret_cast<unsigned*>(saved[3].data_ptr<int>())},
        c10::cuda::getCurrentCUDAStream(input.device().index()).stream());
    weight.accumulate = bias.accumulate = true;
    return {input_gradient, shortcut_gradient, Variable(), Variable(), Variable(), Variable()};
  }
};

}  // namespace

bool suits_fused_batch_norm(const at::Tensor& input, const FusedBatchNorm& options) {
  return input.is_cuda() && input.dim() == 4 &&
         (input.scalar_type() == at::kFloat || input.scalar_type() == at::kBFloat16) &&
         input.is_contiguous(at::MemoryFormat::ChannelsLast) && options.weight.gradient.defined() &&
         options.bias.gradient.defined() && kernels::suits_batch_norm(batch_norm_shape(input));
}

at::Tensor fused_batch_norm(const at::Tensor& input, const at::Tensor& shortcut,
                            const FusedBatchNorm& options) {
  const std::int64_t needed = kernels::batch_norm_counters(batch_norm_shape(input));
  if (!options.counters.defined() || options.counters.numel() < needed) {
    options.counters = at::zeros({needed}, input.options().dtype(at::kInt).requires_grad(false));
  }
  const bool has_shortcut = shortcut.defined();
  return FusedBatchNormFunction::apply(
      input, has_shortcut ? shortcut.contiguous(at::MemoryFormat::ChannelsLast) : input,
      options.weight.value, options.bias.value, has_shortcut, &options);
}

}  // namespace cohort::models
