// An arena of a replica as one flat vector in main memory, without the padding that arenas on a
// device have: the arena itself where it is that already, else a copy that is carried to and fro.
// Or, in place, the arena wherever it is and as it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "core/types.h"
#include "methods/replica.h"

namespace cohort::methods {

class FlatArena {
 public:
  // `arena` is one of the replica's: its parameters, its moves. The replica outlives this.
  FlatArena(const Replica& replica, const at::Tensor& arena, bool in_place = false);

  std::span<float> values() { return values_; }
  // The tensors, which tile it where there is no padding.
  const std::vector<Range>& tensors() const { return tensors_; }

  // Carry what changed there, or here; nothing where there is only one memory.
  void from_device();
  void to_device();

 private:
  const Replica& replica_;
  std::vector<Range> tensors_;
  at::Tensor arena_;
  at::Tensor staged_;  // the whole arena in main memory; undefined without a device
  std::vector<float> packed_;
  std::span<float> values_;
};

}  // namespace cohort::methods
