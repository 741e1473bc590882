// A loaded batch as tensors on the device that trains.
#pragma once

#include <ATen/core/Tensor.h>

#include "data/dataset.h"
#include "data/loader.h"

namespace cohort::engine {

struct BatchTensors {
  at::Tensor inputs;   // N x C x H x W
  at::Tensor labels;   // N, int64; of text N x words
  bool stays = false;  // the batches that come later lie there, too
};

class ResidentData;

struct BatchPlacement {
  at::Device device = at::kCPU;
  bool channels_last = false;
  at::ScalarType precision = at::kFloat;
  const ResidentData* resident = nullptr;  // data sets that lie on GPUs; null: none does
};

// In main memory the tensors share the batch's buffer and keep it alive; nothing is copied. (There
// oneDNN follows the format of the weights, and reorders a first layer's inputs faster than we.)
BatchTensors to_tensors(const data::LoadedBatch& batch, const data::SampleShape& shape,
                        const BatchPlacement& placement);

// `tensors` in the form that `placement` asks for: in main memory the same ones, on a GPU copies.
BatchTensors placed(BatchTensors tensors, const BatchPlacement& placement);

// A loader whose buffers are page-locked when the device can then copy from them faster.
data::Loader make_loader(const data::Dataset& dataset, const data::SampleOrder& order,
                         data::LoaderOptions options, at::Device device);

}  // namespace cohort::engine
