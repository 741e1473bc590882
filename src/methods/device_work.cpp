#include "methods/device_work.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <exception>
#include <mutex>
#include <string>

#include "core/error.h"

namespace cohort::methods {

struct DeviceStream::State {
  explicit State(c10::DeviceIndex device) : guard(c10::cuda::getStreamFromPool(false, device)) {}
  c10::cuda::CUDAStreamGuard guard;
};

DeviceStream::DeviceStream(c10::Device device)
    : state_(device.is_cuda() ? std::make_unique<State>(device.index()) : nullptr) {}
DeviceStream::~DeviceStream() = default;

struct DeviceTurn::State {
  explicit State(std::mutex& turns) : lock(turns) {}
  std::lock_guard<std::mutex> lock;
};

DeviceTurn::DeviceTurn(c10::Device device) {
  if (!device.is_cuda()) return;
  static std::array<std::mutex, 256> turns;  // as many as there are numbers of GPUs
  state_ = std::make_unique<State>(turns.at(static_cast<std::uint8_t>(device.index())));
  c10::cuda::device_synchronize();
}
DeviceTurn::~DeviceTurn() = default;

struct DeviceMoment::State {
  at::cuda::CUDAEvent event{cudaEventDefault};  // with its time
};

DeviceMoment DeviceMoment::now(c10::Device device) {
  DeviceMoment moment;
  if (device.is_cuda()) {
    moment.state_ = std::make_shared<State>();
    moment.state_->event.record(c10::cuda::getCurrentCUDAStream(device.index()));
  } else {
    moment.time_ = Clock::now();
  }
  return moment;
}

bool DeviceMoment::passed() const { return !state_ || state_->event.query(); }

void DeviceMoment::wait() const {
  if (state_) state_->event.synchronize();
}

double DeviceMoment::seconds_since(const DeviceMoment& earlier) const {
  if (!state_) return seconds_between(earlier.time_, time_);
  return 1e-3 * earlier.state_->event.elapsed_time(state_->event);
}

bool can_record(c10::Device device) { return device.is_cuda(); }

struct DeviceGraph::State {
  at::cuda::CUDAGraph graph;
};

DeviceGraph::DeviceGraph() : state_(std::make_unique<State>()) {}
DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::record(at::Generator& generator, const std::function<void()>& work) {
  // One at a time in a process: libtorch runs all backward passes of a GPU on one thread.
  static std::mutex recording;
  const std::lock_guard lock(recording);
  at::cuda::CUDAGraph& graph = state_->graph;
  graph.register_generator_state(generator);
  // A GPU that is waited for may not be recorded meanwhile.
  const DeviceTurn turn({c10::kCUDA, c10::cuda::current_device()});
  // What was used without a recording is of no use to one.
  c10::cuda::CUDACachingAllocator::emptyCache();
  try {
    // Other threads may go on allocating meanwhile.
    graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    work();
    graph.capture_end();
  } catch (const std::exception& error) {
    const std::string cause = error.what();
    try {
      graph.capture_end();             // leaves the stream as it was
    } catch (const std::exception&) {  // which fails, too
    }
    throw RunError("this step cannot be recorded as a CUDA graph; --no-graph goes without: " +
                   cause.substr(0, cause.find('\n')));
  }
}

void DeviceGraph::replay() { state_->graph.replay(); }

}  // namespace cohort::methods
