#include "optimizers/adam.h"
#include "optimizers/optimizer.h"
#include "optimizers/sgd.h"

namespace cohort::optimizers {

const OptimizerRegistry& optimizers() {
  static const OptimizerRegistry registry(
      "optimizer", {
                       {"sgd", "gradient descent with momentum or Nesterov momentum", make_sgd},
                       {"adam", "Adam, weight decay added to the gradient", make_adam},
                       {"adamw", "Adam with decoupled weight decay", make_adamw},
                   });
  return registry;
}

}  // namespace cohort::optimizers
