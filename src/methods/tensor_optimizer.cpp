#include "methods/tensor_optimizer.h"

#include <cmath>
#include <utility>

#include "core/error.h"

namespace cohort {
namespace {

at::Tensor scaled_gradient(const at::Tensor& parameters, const at::Tensor& gradients,
                           const UpdateScalars& scalars, double weight_decay) {
  at::Tensor gradient =
      scalars.gradient_scale == 1.0 ? gradients : gradients.mul(scalars.gradient_scale);
  if (weight_decay != 0) gradient = gradient.add(parameters, weight_decay);
  return gradient;
}

void sgd(const at::Tensor& parameters, const at::Tensor& gradients,
         const std::vector<at::Tensor>& slots, const OptimizerOptions& options,
         const UpdateScalars& scalars) {
  at::Tensor direction = scaled_gradient(parameters, gradients, scalars, scalars.weight_decay);
  if (!slots.empty()) {
    slots[0].mul_(options.momentum).add_(direction);
    direction = options.nesterov ? direction.add(slots[0], options.momentum) : slots[0];
  }
  parameters.add_(direction, -scalars.lr);
}

void adam_step(const at::Tensor& parameters, const at::Tensor& gradient,
               const std::vector<at::Tensor>& slots, const OptimizerOptions& options,
               const UpdateScalars& scalars) {
  const double t = static_cast<double>(scalars.step + 1);
  slots[0].mul_(options.beta1).add_(gradient, 1.0 - options.beta1);
  slots[1].mul_(options.beta2).addcmul_(gradient, gradient, 1.0 - options.beta2);
  const double root_correction = 1.0 / std::sqrt(1.0 - std::pow(options.beta2, t));
  const at::Tensor denominator = slots[1].sqrt().mul_(root_correction).add_(options.epsilon);
  parameters.addcdiv_(slots[0], denominator, -scalars.lr / (1.0 - std::pow(options.beta1, t)));
}

void adam(const at::Tensor& parameters, const at::Tensor& gradients,
          const std::vector<at::Tensor>& slots, const OptimizerOptions& options,
          const UpdateScalars& scalars) {
  adam_step(parameters, scaled_gradient(parameters, gradients, scalars, scalars.weight_decay),
            slots, options, scalars);
}

void adamw(const at::Tensor& parameters, const at::Tensor& gradients,
           const std::vector<at::Tensor>& slots, const OptimizerOptions& options,
           const UpdateScalars& scalars) {
  parameters.mul_(1.0 - scalars.lr * scalars.weight_decay);
  adam_step(parameters, scaled_gradient(parameters, gradients, scalars, 0), slots, options,
            scalars);
}

}  // namespace

TensorUpdate find_tensor_update(const std::string& name) {
  const std::pair<const char*, TensorUpdate> twins[] = {
      {"sgd", sgd}, {"adam", adam}, {"adamw", adamw}};
  for (const auto& [known, update] : twins) {
    if (name == known) return update;
  }
  throw ConfigError("optimizer '" + name + "' runs on --device cpu only");
}

}  // namespace cohort
