// Brings batches to where they are computed on.
#pragma once

#include <memory>

#include "engine/batch_tensors.h"

namespace cohort::engine {

// to_tensors() for batch after batch: a GPU copies each on a stream of its own, while it still
// computes on those before. Used from one thread.
class BatchUploader {
 public:
  explicit BatchUploader(const BatchPlacement& placement);
  ~BatchUploader();
  BatchUploader(const BatchUploader&) = delete;
  BatchUploader& operator=(const BatchUploader&) = delete;

  BatchTensors operator()(const data::LoadedBatch& batch, const data::SampleShape& shape);

 private:
  struct State;
  BatchPlacement placement_;
  std::unique_ptr<State> state_;  // null: nothing is copied
};

}  // namespace cohort::engine
