#include "optimizers/adam.h"

#include <cmath>

#include "core/error.h"
#include "core/simd.h"

namespace cohort::optimizers {
namespace {

COHORT_SIMD_CLONES
// NOLINTNEXTLINE(readability-function-size): each vector is a __restrict parameter
void adam(float* __restrict p, const float* __restrict g, float* __restrict a, float* __restrict s,
          float* __restrict moves, std::size_t n, AdamFactors f) {
  const auto step = [=](std::size_t i) __attribute__((always_inline)) {
    const float d = f.scale * g[i] + f.decay * p[i];
    a[i] = f.beta1 * a[i] + (1.0F - f.beta1) * d;
    s[i] = f.beta2 * s[i] + (1.0F - f.beta2) * d * d;
    return f.step_size * a[i] / (__builtin_sqrtf(s[i]) * f.root_correction + f.epsilon);
  };
  if (moves == nullptr) {
    for (std::size_t i = 0; i < n; ++i) p[i] = f.keep * p[i] - step(i);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const float along = step(i);
    moves[i] = f.lost * p[i] + along;
    p[i] = f.keep * p[i] - along;
  }
}

void require_fraction(const char* flag, double value) {
  if (value < 0 || value >= 1) {
    throw ConfigError(std::string(flag) + " must be at least 0 and below 1, got " +
                      std::to_string(value));
  }
}

}  // namespace

Adam::Adam(const OptimizerOptions& options, Decay decay) : options_(options), decay_(decay) {
  require_fraction("--beta1", options.beta1);
  require_fraction("--beta2", options.beta2);
  if (!(options.epsilon > 0)) throw ConfigError("--epsilon must be above 0");
}

AdamFactors adam_factors(const OptimizerOptions& options, Adam::Decay decay,
                         const UpdateScalars& scalars) {
  const double t = static_cast<double>(scalars.step + 1);
  const bool decoupled = decay == Adam::Decay::kDecoupled;
  return {.scale = static_cast<float>(scalars.gradient_scale),
          .decay = decoupled ? 0.0F : static_cast<float>(scalars.weight_decay),
          .keep = decoupled ? static_cast<float>(1.0 - scalars.lr * scalars.weight_decay) : 1.0F,
          .lost = decoupled ? static_cast<float>(scalars.lr * scalars.weight_decay) : 0.0F,
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .step_size = static_cast<float>(scalars.lr / (1.0 - std::pow(options.beta1, t))),
          .root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, t))),
          .epsilon = static_cast<float>(options.epsilon)};
}

void Adam::update(const UpdateBlock& block, const UpdateScalars& scalars) const {
  const AdamFactors factors = adam_factors(options_, decay_, scalars);
  adam(block.parameters.data(), block.gradients.data(), block.slots[0].data(),
       block.slots[1].data(), block.moves.data(), block.parameters.size(), factors);
}

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options, Adam::Decay::kInGradient);
}

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options, Adam::Decay::kDecoupled);
}

}  // namespace cohort::optimizers
