// Stochastic gradient descent with momentum, as PyTorch's SGD (dampening 0):
//   g <- scale * g + decay * p ;  m <- mu * m + g ;  d = nesterov ? g + mu * m : m ;  p <- p - lr *
//   d
// Without momentum there is no state vector and d = g.
#pragma once

#include <memory>

#include "optimizers/optimizer.h"

namespace cohort::optimizers {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options);
  std::vector<std::string> slots() const override;
  void update(const UpdateBlock& block, const UpdateScalars& scalars) const override;

 private:
  double momentum_;
  bool nesterov_;
};

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options);

}  // namespace cohort::optimizers
