#include "engine/resident_data.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/error.h"
#include "data/array_dataset.h"
#include "kernels/images.h"

namespace cohort::engine {
namespace {

constexpr std::size_t kShare = 8;  // one part of the free memory in so many

kernels::ResizeAxis axis_of(const data::ResampleAxis& axis) {
  return {axis.first, axis.count, axis.weights, static_cast<int>(axis.taps)};
}

std::vector<float> values_of(const data::NormalizeTable& table) {
  std::vector<float> values;
  for (std::int64_t channel = 0; channel < table.channels(); ++channel) {
    values.insert(values.end(), table[channel].begin(), table[channel].end());
  }
  return values;
}

// `values` outlives the result, as the data set does.
kernels::ImageSet image_set(const data::ArrayDataset& dataset, const std::vector<float>& values) {
  const data::ImageArray& images = dataset.images();
  return {.pixels = images.pixels,
          .channels = static_cast<int>(images.shape.channels),
          .height = static_cast<int>(images.shape.height),
          .width = static_cast<int>(images.shape.width),
          .values = values,
          .rows = axis_of(dataset.rows()),
          .columns = axis_of(dataset.columns())};
}

class MadeBatches final : public BatchSource {
 public:
  MadeBatches(const data::ArrayDataset& dataset, const kernels::GpuImages& images,
              const data::SampleOrder& order, Step first, const BatchPlacement& placement)
      : dataset_(dataset),
        images_(images),
        order_(order),
        placement_(placement),
        most_(std::min(order.batch_size(), order.samples_per_epoch())),
        step_(first) {
    const auto bytes = static_cast<std::int64_t>(sizeof(kernels::ImageDraw));
    draws_ = at::empty({static_cast<std::int64_t>(events_.size()) * most_ * bytes},
                       at::TensorOptions().dtype(at::kByte).pinned_memory(true));
    const data::SampleShape shape = dataset.shape();
    const auto format =
        placement.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const at::TensorOptions options(placement.device);
    batch_.inputs = at::empty({most_, shape.channels, shape.height, shape.width},
                              options.dtype(placement.precision), format);
    batch_.labels = at::empty({most_}, options.dtype(at::kLong));
    batch_.stays = true;
  }

  ~MadeBatches() override {
    try {
      for (kernels::GpuEvent& event : events_) event.wait();
    } catch (const RunError&) {  // a GPU that fails does not read them any more
    }
  }

  void wait() override { order_.batch(step_, refs_); }

  BatchTensors take() override {
    const auto slot = static_cast<std::size_t>(step_) % events_.size();
    ++step_;
    events_[slot].wait();  // until a batch of earlier has been made
    const auto size = static_cast<std::int64_t>(refs_.size());
    const std::span draws(reinterpret_cast<kernels::ImageDraw*>(draws_.data_ptr<std::uint8_t>()) +
                              slot * static_cast<std::size_t>(most_),
                          refs_.size());
    std::transform(refs_.begin(), refs_.end(), draws.begin(), [&](const data::SampleRef& ref) {
      const data::ImageShift shift = dataset_.shift(ref.augmentation);
      return kernels::ImageDraw{ref.index, dataset_.label(ref.index), static_cast<int>(shift.down),
                                static_cast<int>(shift.right), shift.mirror};
    });
    CUstream_st* const stream = c10::cuda::getCurrentCUDAStream(placement_.device.index()).stream();
    images_.make(draws,
                 {.inputs = batch_.inputs.data_ptr(),
                  .element = placement_.precision == at::kFloat ? kernels::Element::kFloat
                                                                : kernels::Element::kBFloat16,
                  .channels_last = placement_.channels_last,
                  .labels = batch_.labels.data_ptr<std::int64_t>()},
                 stream);
    events_[slot].record(stream);
    if (size == most_) return batch_;
    return {batch_.inputs.narrow(0, 0, size), batch_.labels.narrow(0, 0, size), true};
  }

 private:
  const data::ArrayDataset& dataset_;
  const kernels::GpuImages& images_;
  const data::SampleOrder& order_;
  const BatchPlacement placement_;
  const std::int64_t most_;  // images of a batch
  Step step_;
  std::vector<data::SampleRef> refs_;
  at::Tensor draws_;  // page-locked; a part for each event, behind which it is written anew
  std::array<kernels::GpuEvent, 4> events_;
  BatchTensors batch_;  // every one is made there: the stream keeps their order
};

}  // namespace

struct ResidentData::Copy {
  Copy(const data::ArrayDataset& of, at::Device on)
      : dataset(of), device(on), values(values_of(of.table())), images(image_set(of, values)) {}

  const data::ArrayDataset& dataset;
  const at::Device device;
  const std::vector<float> values;
  const kernels::GpuImages images;
};

ResidentData::ResidentData(const data::DataSplits& data, std::span<const at::Device> devices) {
  std::set<c10::DeviceIndex> seen;
  for (const at::Device device : devices) {
    if (!device.is_cuda() || !seen.insert(device.index()).second) continue;
    const c10::cuda::CUDAGuard guard(device);
    std::size_t left = kernels::free_gpu_bytes() / kShare;
    for (const data::Dataset* const set : {data.train.get(), data.test.get()}) {
      const auto* const images = dynamic_cast<const data::ArrayDataset*>(set);
      if (images == nullptr || images->images().pixels.size() > left) continue;
      left -= images->images().pixels.size();
      copies_.push_back(std::make_unique<const Copy>(*images, device));
    }
  }
}

ResidentData::~ResidentData() = default;

std::unique_ptr<BatchSource> ResidentData::batches(const data::Dataset& dataset,
                                                   const data::SampleOrder& order, Step first,
                                                   const BatchPlacement& placement) const {
  for (const auto& copy : copies_) {
    if (&copy->dataset != &dataset || copy->device != placement.device) continue;
    const c10::cuda::CUDAGuard guard(placement.device);
    return std::make_unique<MadeBatches>(copy->dataset, copy->images, order, first, placement);
  }
  return nullptr;
}

}  // namespace cohort::engine
