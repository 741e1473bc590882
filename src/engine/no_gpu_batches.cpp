// Without the kernels no data set lies in a GPU's memory, and a GPU copies between its steps.
#include "engine/batch_uploader.h"
#include "engine/resident_data.h"

namespace cohort::engine {

struct BatchUploader::State {};
BatchUploader::BatchUploader(const BatchPlacement& placement) : placement_(placement) {}
BatchUploader::~BatchUploader() = default;
BatchTensors BatchUploader::operator()(const data::LoadedBatch& batch,
                                       const data::SampleShape& shape) {
  return to_tensors(batch, shape, placement_);
}

struct ResidentData::Copy {};
ResidentData::ResidentData(const data::DataSplits&, std::span<const at::Device>) {}
ResidentData::~ResidentData() = default;
std::unique_ptr<BatchSource> ResidentData::batches(const data::Dataset&, const data::SampleOrder&,
                                                   Step, const BatchPlacement&) const {
  return nullptr;
}

}  // namespace cohort::engine
