#include "engine/batch_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <utility>

namespace cohort::engine {

BatchTensors to_tensors(const data::LoadedBatch& batch, const data::SampleShape& shape,
                        const BatchPlacement& placement) {
  // The deleters' copies of the batch keep its buffer on loan.
  at::Tensor inputs = at::from_blob(
      batch.inputs().data(), {batch.size(), shape.channels, shape.height, shape.width},
      [batch](void*) {}, at::TensorOptions().dtype(at::kFloat));
  at::Tensor labels = at::from_blob(
      const_cast<std::int64_t*>(batch.labels().data()),
      {static_cast<std::int64_t>(batch.labels().size())}, [batch](void*) {},
      at::TensorOptions().dtype(at::kLong));
  if (labels.size(0) != batch.size()) labels = labels.view({batch.size(), -1});
  return placed({std::move(inputs), std::move(labels)}, placement);
}

BatchTensors placed(BatchTensors tensors, const BatchPlacement& placement) {
  if (placement.device.is_cpu()) return tensors;
  const auto format =
      placement.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  tensors.inputs = tensors.inputs.to(placement.device).to(placement.precision, false, true, format);
  tensors.labels = tensors.labels.to(placement.device).clone();
  return tensors;
}

data::Loader make_loader(const data::Dataset& dataset, const data::SampleOrder& order,
                         data::LoaderOptions options, at::Device device) {
  if (device.is_cuda()) {
    options.allocate = [](std::size_t count) {
      const at::Tensor memory =
          at::empty({static_cast<std::int64_t>(count)},
                    at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
      return std::shared_ptr<float>(memory.data_ptr<float>(), [memory](float*) {});
    };
  }
  return data::Loader(dataset, order, std::move(options));
}

}  // namespace cohort::engine
