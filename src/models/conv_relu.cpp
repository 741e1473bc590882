#include "models/conv_relu.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/cudnn_convolution_relu.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <vector>

namespace cohort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kStride = "stride";
constexpr const char* kPadding = "padding";
constexpr const char* kDilation = "dilation";
constexpr const char* kGroups = "groups";
constexpr const char* kNeedsInputGradient = "needs_input_gradient";

std::vector<std::int64_t> list_of(const std::array<std::int64_t, 2>& pair) {
  return {pair.begin(), pair.end()};
}

struct ConvReluFunction : public torch::autograd::Function<ConvReluFunction> {
  static Variable forward(AutogradContext* context, const Variable& input, const Variable& weight,
                          const Variable& bias, const ConvRelu* options) {
    at::Tensor output = at::cudnn_convolution_relu(
        input, weight, bias, options->stride, options->padding, options->dilation, options->groups);
    context->save_for_backward({input, weight, output});
    context->saved_data[kStride] = list_of(options->stride);
    context->saved_data[kPadding] = list_of(options->padding);
    context->saved_data[kDilation] = list_of(options->dilation);
    context->saved_data[kGroups] = options->groups;
    context->saved_data[kNeedsInputGradient] = input.requires_grad();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor gradient = at::threshold_backward(gradients[0], saved[2], 0);
    const std::array<std::int64_t, 1> bias_sizes = {weight.size(0)};
    const std::array<std::int64_t, 2> none = {0, 0};
    const auto list = [&](const char* name) { return context->saved_data[name].toIntVector(); };
    const auto [of_input, of_weight, of_bias] =
        at::convolution_backward(gradient, saved[0], weight, at::OptionalIntArrayRef(bias_sizes),
                                 list(kStride), list(kPadding), list(kDilation),
                                 /*transposed=*/false, none, context->saved_data[kGroups].toInt(),
                                 {context->saved_data[kNeedsInputGradient].toBool(), true, true});
    return {of_input, of_weight, of_bias, Variable()};
  }
};

}  // namespace

bool suits_conv_relu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return input.is_cuda() && bias.defined() && input.numel() > 0 &&
         input.scalar_type() == at::kBFloat16 && weight.scalar_type() == at::kBFloat16 &&
         input.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor conv_relu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvRelu& options) {
  return ConvReluFunction::apply(input, weight, bias, &options);
}

}  // namespace cohort::models
