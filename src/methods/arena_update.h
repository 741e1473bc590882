// The optimizer's step over arenas, wherever they live.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/types.h"
#include "methods/tensor_optimizer.h"
#include "optimizers/optimizer.h"

namespace cohort::methods {

// Applies one optimizer to ranges of arenas: in main memory its fused pass, split over libtorch's
// threads; on a device the same arithmetic as a few tensor operations.
class ArenaUpdate {
 public:
  ArenaUpdate(const std::string& optimizer, const optimizers::OptimizerOptions& options,
              at::Device device);

  std::vector<std::string> slots() const { return optimizer_->slots(); }
  void operator()(const Arenas& arenas, Range range,
                  const optimizers::UpdateScalars& scalars) const;

 private:
  std::unique_ptr<optimizers::Optimizer> optimizer_;
  TensorUpdate on_device_ = nullptr;  // null in main memory
  optimizers::OptimizerOptions options_;
};

// The Euclidean norm of a float32 arena; in main memory the same bits for any number of threads.
double arena_norm(const at::Tensor& arena);

}  // namespace cohort::methods
