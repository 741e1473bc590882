// What there is of the GPU parts without the kernels.
#include <torch/cuda.h>

#include "core/error.h"
#include "methods/device_work.h"
#include "methods/gpu_vectors.h"
#include "methods/gradient_gather.h"
#include "methods/kernel_update.h"

namespace cohort::methods {

struct DeviceStream::State {};
DeviceStream::DeviceStream(c10::Device) {}
DeviceStream::~DeviceStream() = default;

struct DeviceTurn::State {};
DeviceTurn::DeviceTurn(c10::Device) {}
DeviceTurn::~DeviceTurn() = default;

struct DeviceMoment::State {};
DeviceMoment DeviceMoment::now(c10::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
  DeviceMoment moment;
  moment.time_ = Clock::now();
  return moment;
}
bool DeviceMoment::passed() const { return true; }
void DeviceMoment::wait() const {}
double DeviceMoment::seconds_since(const DeviceMoment& earlier) const {
  return seconds_between(earlier.time_, time_);
}

bool can_record(c10::Device) { return false; }

struct DeviceGraph::State {};
DeviceGraph::DeviceGraph() = default;
DeviceGraph::~DeviceGraph() = default;
void DeviceGraph::record(at::Generator&, const std::function<void()>&) {
  COHORT_CHECK(false, "asked for only where can_record() says so");
}
void DeviceGraph::replay() {}

GradientGather::GradientGather(at::Device) {}
bool GradientGather::takes(const at::Tensor&, const at::Tensor&) const { return false; }
void GradientGather::collect(const at::Tensor&) {}

std::shared_ptr<GpuVectors> make_gpu_vectors(const gossip::GossipSettings&,
                                             const std::vector<Range>&, std::int64_t,
                                             const std::shared_ptr<kernels::MessageBoard>&) {
  return nullptr;
}
std::size_t counted_bytes(std::span<const std::byte> frame) { return frame.size(); }

TensorUpdate find_kernel_update(const std::string&) { return nullptr; }

}  // namespace cohort::methods
