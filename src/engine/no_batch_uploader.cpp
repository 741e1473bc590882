// Without the kernels, a GPU copies between its steps.
#include "engine/batch_uploader.h"

namespace cohort {

struct BatchUploader::State {};
BatchUploader::BatchUploader(const BatchPlacement& placement) : placement_(placement) {}
BatchUploader::~BatchUploader() = default;
BatchTensors BatchUploader::operator()(const LoadedBatch& batch, const SampleShape& shape) {
  return to_tensors(batch, shape, placement_);
}

}  // namespace cohort
