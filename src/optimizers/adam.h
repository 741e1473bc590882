// Adam (Kingma, Ba 2015) and AdamW (Loshchilov, Hutter 2019), as PyTorch computes them:
//   Adam adds decay * p to the gradient; AdamW shrinks p by lr * decay first, then
//   a <- b1 a + (1 - b1) g ;  s <- b2 s + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * a / (sqrt(s / (1 - b2^t)) + epsilon)
#pragma once

#include <memory>

#include "optimizers/optimizer.h"

namespace cohort::optimizers {

class Adam final : public Optimizer {
 public:
  enum class Decay { kInGradient, kDecoupled };

  Adam(const OptimizerOptions& options, Decay decay);
  std::vector<std::string> slots() const override { return {"exp_avg", "exp_avg_sq"}; }
  void update(const UpdateBlock& block, const UpdateScalars& scalars) const override;

 private:
  OptimizerOptions options_;
  Decay decay_;
};

// What a step multiplies with, in float32. A GPU's kernel computes with the same.
struct AdamFactors {
  float scale, decay, keep, lost, beta1, beta2, step_size, root_correction, epsilon;
};
AdamFactors adam_factors(const OptimizerOptions& options, Adam::Decay decay,
                         const UpdateScalars& scalars);

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options);

}  // namespace cohort::optimizers
