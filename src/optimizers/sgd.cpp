#include "optimizers/sgd.h"

#include "core/error.h"
#include "core/simd.h"

namespace cohort::optimizers {
namespace {

struct SgdFactors {
  float scale, decay, mu, lr;
};

// p -= step(i); the steps also go to `moves` unless it is null. Inlined, to be compiled for the
// instruction set of its caller.
template <class Step>
[[gnu::always_inline]] inline void descend(float* __restrict p, float* __restrict moves,
                                           std::size_t n, const Step& step) {
  if (moves == nullptr) {
    for (std::size_t i = 0; i < n; ++i) p[i] -= step(i);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    moves[i] = step(i);
    p[i] -= moves[i];
  }
}

COHORT_SIMD_CLONES
void plain(float* __restrict p, const float* __restrict g, float* __restrict moves, std::size_t n,
           SgdFactors f) {
  descend(
      p, moves, n, [=](std::size_t i) __attribute__((always_inline)) {
        return f.lr * (f.scale * g[i] + f.decay * p[i]);
      });
}

COHORT_SIMD_CLONES
void heavy_ball(float* __restrict p, const float* __restrict g, float* __restrict m,
                float* __restrict moves, std::size_t n, SgdFactors f) {
  descend(
      p, moves, n, [=](std::size_t i) __attribute__((always_inline)) {
        m[i] = f.mu * m[i] + (f.scale * g[i] + f.decay * p[i]);
        return f.lr * m[i];
      });
}

COHORT_SIMD_CLONES
void nesterov(float* __restrict p, const float* __restrict g, float* __restrict m,
              float* __restrict moves, std::size_t n, SgdFactors f) {
  descend(
      p, moves, n, [=](std::size_t i) __attribute__((always_inline)) {
        const float d = f.scale * g[i] + f.decay * p[i];
        m[i] = f.mu * m[i] + d;
        return f.lr * (d + f.mu * m[i]);
      });
}

}  // namespace

Sgd::Sgd(const OptimizerOptions& options)
    : momentum_(options.momentum), nesterov_(options.nesterov) {
  if (momentum_ < 0 || momentum_ >= 1) {
    throw ConfigError("--momentum must be at least 0 and below 1, got " +
                      std::to_string(momentum_));
  }
  if (nesterov_ && momentum_ == 0) {
    throw ConfigError("--nesterov needs a momentum: give --momentum 0.9, or leave --nesterov out");
  }
}

std::vector<std::string> Sgd::slots() const {
  if (momentum_ == 0) return {};
  return {"momentum"};
}

void Sgd::update(const UpdateBlock& block, const UpdateScalars& scalars) const {
  const SgdFactors factors{static_cast<float>(scalars.gradient_scale),
                           static_cast<float>(scalars.weight_decay), static_cast<float>(momentum_),
                           static_cast<float>(scalars.lr)};
  float* p = block.parameters.data();
  const float* g = block.gradients.data();
  float* moves = block.moves.data();
  const std::size_t n = block.parameters.size();
  if (momentum_ == 0) {
    plain(p, g, moves, n, factors);
  } else if (nesterov_) {
    nesterov(p, g, block.slots[0].data(), moves, n, factors);
  } else {
    heavy_ball(p, g, block.slots[0].data(), moves, n, factors);
  }
}

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace cohort::optimizers
