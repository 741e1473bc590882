#include "models/linear_function.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include <array>
#include <vector>

#include "models/saved_parameter.h"

namespace cohort::models {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kWeight = "weight";
constexpr const char* kBias = "bias";
constexpr const char* kInputNeedsGradient = "input_needs_gradient";

void store_weight_gradient(Parameter& weight, const at::Tensor& output_gradient,
                           const at::Tensor& input) {
  const at::Tensor transposed = output_gradient.t();
  const bool wider = weight.gradient.scalar_type() != input.scalar_type();
  if (weight.accumulate) {
    wider ? weight.gradient.add_(at::mm(transposed, input))
          : weight.gradient.addmm_(transposed, input);
  } else if (!wider) {
    at::mm_out(weight.gradient, transposed, input);
  } else {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
    at::mm_out(weight.gradient, transposed, input, weight.gradient.scalar_type());
#else
    weight.gradient.copy_(at::mm(transposed, input));
#endif
  }
  weight.accumulate = true;  // a layer used twice in one pass adds up
}

void store_bias_gradient(Parameter& bias, const at::Tensor& output_gradient) {
  const std::array<std::int64_t, 1> rows = {0};
  const at::ScalarType precision = bias.gradient.scalar_type();
  if (bias.accumulate) {
    bias.gradient.add_(output_gradient.sum(rows, /*keepdim=*/false, precision));
  } else {
    at::sum_out(bias.gradient, output_gradient, at::OptionalIntArrayRef(rows), /*keepdim=*/false,
                precision);
  }
  bias.accumulate = true;
}

// On matrices only: an output that is a view made in here could not be changed in place by a ReLU.
struct LinearFunction : public torch::autograd::Function<LinearFunction> {
  // The values are arguments of their own so that the output is known to depend on them. Without a
  // bias, `bias_value` is ignored; an undefined tensor cannot be an argument.
  static Variable forward(AutogradContext* context, const Variable& input,
                          const Variable& weight_value, const Variable& bias_value,
                          Parameter* weight, Parameter* bias) {
    context->save_for_backward({input, weight_value});
    context->saved_data[kWeight] = to_integer(weight);
    context->saved_data[kBias] = to_integer(bias);
    context->saved_data[kInputNeedsGradient] = input.requires_grad();
    return at::linear(input, weight_value, bias == nullptr ? at::Tensor() : bias_value);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    Parameter* weight = to_parameter(context->saved_data[kWeight]);
    Parameter* bias = to_parameter(context->saved_data[kBias]);
    // All of the passes may be of lower precision than the gradients that are kept.
    const at::Tensor& output_gradient = gradients[0];
    store_weight_gradient(*weight, output_gradient, saved[0]);
    if (bias != nullptr) store_bias_gradient(*bias, output_gradient);

    Variable input_gradient;
    if (context->saved_data[kInputNeedsGradient].toBool()) {
      input_gradient = at::mm(output_gradient, saved[1]);
    }
    return {input_gradient, Variable(), Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor linear_with_gradient_in_place(const at::Tensor& input, Parameter& weight,
                                         Parameter* bias) {
  const at::Tensor& bias_value = bias == nullptr ? weight.value : bias->value;
  if (input.dim() == 2) {
    return LinearFunction::apply(input, weight.value, bias_value, &weight, bias);
  }
  std::vector<std::int64_t> shape = input.sizes().vec();
  const at::Tensor rows = input.reshape({-1, shape.back()});
  shape.back() = weight.value.size(0);
  return LinearFunction::apply(rows, weight.value, bias_value, &weight, bias).view(shape);
}

}  // namespace cohort::models
