// Who finds out how good a model really is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cohort::swamp {

// Computes a model's loss on each of some samples. Used by one thread, which is its own: it may
// take its time. Deterministic: the same model and draw give the same losses.
class Examiner {
 public:
  virtual ~Examiner() = default;

  // Losses of single samples, in an order that the draw decides and nothing else. Draw 0 is the
  // fixed validation set, the same samples every time; draw n > 0 the n-th fresh sample of the
  // training set. `model` has as many values as the job's specification says. A std::exception
  // refuses this model with its message as the reason, and no other.
  virtual std::vector<float> losses(std::span<const float> model, std::uint64_t draw) = 0;
};

}  // namespace cohort::swamp
