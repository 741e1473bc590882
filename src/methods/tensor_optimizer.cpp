#include "methods/tensor_optimizer.h"

#include <cmath>
#include <utility>

#include "core/error.h"

namespace cohort::methods {
namespace {

at::Tensor scaled_gradient(const Arenas& arenas, const optimizers::UpdateScalars& scalars,
                           double weight_decay) {
  at::Tensor gradient = scalars.gradient_scale == 1.0
                            ? arenas.gradients
                            : arenas.gradients.mul(scalars.gradient_scale);
  if (weight_decay != 0) gradient = gradient.add(arenas.parameters, weight_decay);
  return gradient;
}

void sgd(const Arenas& arenas, const optimizers::OptimizerOptions& options,
         const optimizers::UpdateScalars& scalars) {
  at::Tensor direction = scaled_gradient(arenas, scalars, scalars.weight_decay);
  if (!arenas.slots.empty()) {
    const at::Tensor& momentum = arenas.slots[0];
    momentum.mul_(options.momentum).add_(direction);
    direction = options.nesterov ? direction.add(momentum, options.momentum) : momentum;
  }
  if (arenas.moves.defined()) arenas.moves.copy_(direction).mul_(scalars.lr);
  arenas.parameters.add_(direction, -scalars.lr);
}

// `lost` is the share of the parameters that decays beside the gradient.
void adam_step(const Arenas& arenas, const at::Tensor& gradient,
               const optimizers::OptimizerOptions& options,
               const optimizers::UpdateScalars& scalars, double lost) {
  const std::vector<at::Tensor>& slots = arenas.slots;
  const double t = static_cast<double>(scalars.step + 1);
  slots[0].mul_(options.beta1).add_(gradient, 1.0 - options.beta1);
  slots[1].mul_(options.beta2).addcmul_(gradient, gradient, 1.0 - options.beta2);
  const double root_correction = 1.0 / std::sqrt(1.0 - std::pow(options.beta2, t));
  const at::Tensor denominator = slots[1].sqrt().mul_(root_correction).add_(options.epsilon);
  const double step = scalars.lr / (1.0 - std::pow(options.beta1, t));
  if (arenas.moves.defined()) {
    arenas.moves.copy_(arenas.parameters).mul_(lost).addcdiv_(slots[0], denominator, step);
  }
  if (lost != 0) arenas.parameters.mul_(1.0 - lost);
  arenas.parameters.addcdiv_(slots[0], denominator, -step);
}

void adam(const Arenas& arenas, const optimizers::OptimizerOptions& options,
          const optimizers::UpdateScalars& scalars) {
  adam_step(arenas, scaled_gradient(arenas, scalars, scalars.weight_decay), options, scalars, 0);
}

void adamw(const Arenas& arenas, const optimizers::OptimizerOptions& options,
           const optimizers::UpdateScalars& scalars) {
  adam_step(arenas, scaled_gradient(arenas, scalars, 0), options, scalars,
            scalars.lr * scalars.weight_decay);
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

}  // namespace cohort::methods
