#include "collectives/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "collectives/device_collectives.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

void check(cudaError_t result, const std::string& doing) {
  if (result != cudaSuccess) throw RunError(doing + ": CUDA says " + cudaGetErrorString(result));
}

void check(ncclResult_t result, const std::string& doing) {
  if (result == ncclSuccess) return;
  const std::string message = doing + ": NCCL says " + ncclGetErrorString(result);
  if (result == ncclRemoteError) throw PeerError(message);
  throw RunError(message);
}

// Looks again and again at first, since most sums take microseconds, then less and less often.
class BackOff {
 public:
  void wait() {
    if (looks_ < kLooks) {
      ++looks_;
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, kLongest);
  }

 private:
  static constexpr int kLooks = 200;
  static constexpr std::chrono::microseconds kLongest{200};
  int looks_ = 0;
  std::chrono::microseconds pause_{5};
};

// Makes a GPU the current one of this thread until the scope ends.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) {
    check(cudaGetDevice(&before_), "asking for the current GPU");
    check(cudaSetDevice(gpu), "choosing GPU " + std::to_string(gpu));
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

// One rank's communicator and stream. Calls never block in NCCL itself: it is told to return at
// once and is asked until it is done, so that every wait can end at its deadline.
class Communicator {
 public:
  Communicator(int gpu, int size, Rank rank, const ncclUniqueId& id, Deadline deadline)
      : gpu_(gpu), name_("GPU " + std::to_string(gpu)) {
    const CurrentGpu current(gpu_);
    try {
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), name_ + ", new stream");
      check(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), name_ + ", new event");
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      wait_until_taken(ncclCommInitRankConfig(&communicator_, size, id, rank, &config),
                       "joining the group", deadline);
    } catch (...) {
      release();
      throw;
    }
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() {
    int before = 0;
    const bool known = cudaGetDevice(&before) == cudaSuccess;
    cudaSetDevice(gpu_);
    release();
    if (known) cudaSetDevice(before);
  }

  void all_reduce(std::span<float> values, Deadline deadline) {
    const CurrentGpu current(gpu_);
    const std::string doing = "all_reduce of " + std::to_string(values.size_bytes()) + " bytes";
    check_place(values.data());
    check(cudaEventRecord(ready_, cudaStreamLegacy), name_ + ", " + doing);
    check(cudaStreamWaitEvent(stream_, ready_, 0), name_ + ", " + doing);
    wait_until_taken(ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat, ncclSum,
                                   communicator_, stream_),
                     doing, deadline);
    BackOff back_off;
    for (;;) {
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) check(state, name_ + ", " + doing);
      check_running(doing);
      check_time(doing, deadline);
      back_off.wait();
    }
  }

 private:
  void check_place(const void* values) const {
    cudaPointerAttributes place = {};
    check(cudaPointerGetAttributes(&place, values), name_ + ", looking at a buffer");
    COHORT_CHECK(place.type == cudaMemoryTypeDevice && place.device == gpu_,
                 "the buffer to sum is not in the memory of " + name_);
  }

  // Waits until NCCL has taken over what `result` says it has begun.
  void wait_until_taken(ncclResult_t result, const std::string& doing, Deadline deadline) {
    BackOff back_off;
    while (result == ncclInProgress) {
      check_time(doing, deadline);
      back_off.wait();
      check(ncclCommGetAsyncError(communicator_, &result), name_ + ", " + doing);
    }
    check(result, name_ + ", " + doing);
  }

  void check_running(const std::string& doing) const {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(communicator_, &state), name_ + ", " + doing);
    if (state != ncclInProgress) check(state, name_ + ", " + doing);
  }

  void check_time(const std::string& doing, Deadline deadline) const {
    if (Clock::now() < deadline) return;
    throw PeerError(name_ + ", " + doing + ": not done at its deadline; another rank's GPU hangs");
  }

  // Aborts, for an orderly farewell would wait for the other ranks. Kernels that still run end.
  void release() {
    if (communicator_ != nullptr) ncclCommAbort(communicator_);
    if (ready_ != nullptr) cudaEventDestroy(ready_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  const int gpu_;
  const std::string name_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;  // when what the gradients' stream was given so far is done
};

class NcclCollectives final : public DeviceCollectives {
 public:
  NcclCollectives(std::unique_ptr<Collectives> host, std::unique_ptr<Communicator> communicator)
      : DeviceCollectives(std::move(host)), communicator_(std::move(communicator)) {}

  void all_reduce(std::span<float> values, Deadline deadline) override {
    if (communicator_ == nullptr) throw PeerError(failure_);
    try {
      meet(values, deadline);
      if (!values.empty()) communicator_->all_reduce(values, deadline);
    } catch (const std::exception& error) {
      failure_ = error.what();
      communicator_.reset();
      leave(failure_);
      throw;
    }
    const std::uint64_t others = static_cast<std::uint64_t>(size()) - 1;
    count(2 * others * values.size_bytes() / static_cast<std::uint64_t>(size()));
  }

 private:
  std::unique_ptr<Communicator> communicator_;  // null after a failure
  std::string failure_;
};

}  // namespace

int count_gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::vector<std::unique_ptr<Collectives>> make_nccl_group(
    std::vector<std::unique_ptr<Collectives>> host, Deadline deadline) {
  const int size = static_cast<int>(host.size());
  if (const int gpus = count_gpus(); size > gpus) {
    throw ConfigError(std::to_string(size) + " workers but " + std::to_string(gpus) +
                      (gpus == 1 ? " GPU" : " GPUs") + ": --engine nccl gives each its own");
  }
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "starting a group");
  std::vector<std::unique_ptr<Communicator>> communicators(host.size());
  std::exception_ptr failure;
  std::mutex mutex;  // guards the line above
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        communicators[static_cast<std::size_t>(rank)] =
            std::make_unique<Communicator>(rank, size, rank, id, deadline);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  std::vector<std::unique_ptr<Collectives>> group;
  for (std::size_t rank = 0; rank < host.size(); ++rank) {
    group.push_back(
        std::make_unique<NcclCollectives>(std::move(host[rank]), std::move(communicators[rank])));
  }
  return group;
}

}  // namespace cohort::collectives
