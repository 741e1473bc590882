// How a gradient becomes a change of the parameters.
//
// An optimizer is arithmetic over flat spans: it owns no memory and has no state of its own, so
// one object may serve many threads, a worker's arena or a server's blocks alike. Its caller keeps
// `slots()` vectors as long as the parameters, zero at first, and hands in matching stretches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/types.h"

namespace cohort::optimizers {

inline constexpr std::size_t kMaxOptimizerSlots = 2;

// A stretch of the model with one weight decay. All spans are equally long and do not overlap.
struct UpdateBlock {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::array<std::span<float>, kMaxOptimizerSlots> slots;  // the first slots() are used
  // Unless empty, filled with what the step subtracts from the parameters: their difference before
  // and after would be rounded to their last bit, which may be more than a small step.
  std::span<float> moves = {};
};

struct UpdateScalars {
  double lr = 0;
  double weight_decay = 0;
  double gradient_scale = 1;  // the gradients are multiplied by this first: clipping, averaging
  Step step = 0;              // steps taken before this one
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Names of the state vectors, as they appear in a checkpoint.
  virtual std::vector<std::string> slots() const = 0;

  // One step on one block, in a single pass over memory.
  virtual void update(const UpdateBlock& block, const UpdateScalars& scalars) const = 0;
};

struct OptimizerOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

using OptimizerRegistry = Registry<Optimizer, const OptimizerOptions&>;
const OptimizerRegistry& optimizers();

}  // namespace cohort::optimizers
