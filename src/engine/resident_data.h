// Data sets of small images in the memory of GPUs: a copy on each GPU, whichever workers compute
// there. Batches are then made by one kernel on the worker's own stream, and nothing but 32 bytes
// an image is read from main memory.
//
// Suited are the sets that lie in main memory as bytes (ArrayDataset); order and augmentation are
// those of a Loader, so the values of a batch are the same to the last bit.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/registry.h"
#include "engine/batch_source.h"

namespace cohort::engine {

class ResidentData {
 public:
  // Copies to the GPUs among `devices` those of the two sets that are suited, as long as they take
  // at most an eighth of what is free there. Sets that are not copied, and all without the kernels,
  // are read by a loader. `data` outlives this object.
  ResidentData(const data::DataSplits& data, std::span<const at::Device> devices);
  ~ResidentData();
  ResidentData(const ResidentData&) = delete;
  ResidentData& operator=(const ResidentData&) = delete;

  // Batches from step `first` on; null where the data set does not lie on that device. May be
  // called from any thread.
  std::unique_ptr<BatchSource> batches(const data::Dataset& dataset, const data::SampleOrder& order,
                                       Step first, const BatchPlacement& placement) const;

 private:
  struct Copy;
  std::vector<std::unique_ptr<const Copy>> copies_;
};

}  // namespace cohort::engine
