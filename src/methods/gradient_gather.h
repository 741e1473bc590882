// Collects the gradients of a backward pass into the arena at its end: on a GPU by one kernel for
// many tensors instead of one for each. Elsewhere, or without the kernels, it takes none.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/types.h"

namespace cohort::methods {

class GradientGather {
 public:
  struct Part {
    at::Tensor gradient;
    Range range;       // of the arena
    bool add = false;  // to what is there
  };

  explicit GradientGather(at::Device device);

  // Whether gradients are collected late at all.
  bool late() const { return late_; }
  // Whether it can collect `gradient`, which belongs into `place`.
  bool takes(const at::Tensor& gradient, const at::Tensor& place) const;
  void add(Part part) { parts_.push_back(std::move(part)); }
  void collect(const at::Tensor& arena);

 private:
  bool late_ = false;
  std::vector<Part> parts_;
};

}  // namespace cohort::methods
