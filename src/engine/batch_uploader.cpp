#include "engine/batch_uploader.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>

namespace cohort::engine {

struct BatchUploader::State {
  // Where a batch lies as the loader made it until it has its final form.
  struct Slot {
    data::LoadedBatch batch;  // from which is copied
    at::Tensor inputs;
    at::Tensor labels;
    at::cuda::CUDAEvent copied;
    at::cuda::CUDAEvent taken;
  };

  explicit State(c10::DeviceIndex device) : stream(c10::cuda::getStreamFromPool(false, device)) {}

  c10::cuda::CUDAStream stream;
  std::array<Slot, 2> slots;
  std::size_t next = 0;
};

BatchUploader::BatchUploader(const BatchPlacement& placement)
    : placement_(placement),
      state_(placement.device.is_cuda() ? std::make_unique<State>(placement.device.index())
                                        : nullptr) {}
BatchUploader::~BatchUploader() {
  if (!state_) return;
  try {
    for (State::Slot& slot : state_->slots) slot.copied.synchronize();
  } catch (const c10::Error&) {  // a GPU that fails copies nothing more
  }
}

BatchTensors BatchUploader::operator()(const data::LoadedBatch& batch,
                                       const data::SampleShape& shape) {
  if (!state_) return to_tensors(batch, shape, placement_);
  State::Slot& slot = state_->slots[state_->next];
  state_->next = (state_->next + 1) % state_->slots.size();
  slot.copied.synchronize();
  slot.batch = batch;
  const BatchTensors host = to_tensors(batch, shape, {});
  const c10::cuda::CUDAStream own = c10::cuda::getCurrentCUDAStream(placement_.device.index());
  {
    const c10::cuda::CUDAStreamGuard guard(state_->stream);
    slot.taken.block(state_->stream);
    const auto copy = [&](at::Tensor& to, const at::Tensor& from) {
      if (!to.defined() || to.sizes() != from.sizes()) {
        to = at::empty(from.sizes(), from.options().device(placement_.device));
      }
      to.copy_(from, /*non_blocking=*/true);
    };
    copy(slot.inputs, host.inputs);
    copy(slot.labels, host.labels);
    slot.copied.record(state_->stream);
  }
  slot.copied.block(own);
  BatchTensors tensors = placed({slot.inputs, slot.labels}, placement_);
  slot.taken.record(own);
  return tensors;
}

}  // namespace cohort::engine
