// Repeats a step's passes from a recording while the batches look alike: on a GPU one launch
// instead of thousands.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/batch_tensors.h"

namespace cohort::engine {

class StepRecorder {
 public:
  // Computes the gradients of a batch and returns a tensor that tells of it: always the same work
  // for batches that look alike.
  using Passes = std::function<at::Tensor(const BatchTensors&, std::int64_t samples_of_all)>;

  // `generator` is what the passes draw from.
  StepRecorder(at::Generator generator, Passes passes);
  ~StepRecorder();
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;

  // Calls the passes or repeats them. Batches look alike if their shapes are the same and
  // `samples_of_all` is. The result is overwritten by the next call.
  at::Tensor run(const BatchTensors& batch, std::int64_t samples_of_all);

 private:
  struct Look {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> labels;
    std::int64_t samples_of_all = 0;
    bool operator==(const Look&) const = default;
  };
  struct Recording;

  void take(const BatchTensors& batch);

  at::Generator generator_;
  Passes passes_;
  Look last_;
  int alike_ = 0;  // in a row, of the last batches
  std::unique_ptr<Recording> recording_;
};

}  // namespace cohort::engine
