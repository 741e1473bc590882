#include "kernels/gossip.h"
#include "kernels/launch.cuh"
#include "kernels/vectors.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;
__global__ void __launch_bounds__(kThreads)
    combine_kernel(float* out, float a, const float* x, float b, const float* y,
                   std::int64_t size) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < size / 4; i += stride) {
    float p[4], q[4];
    load<float>(x + 4 * i, p);
    load<float>(y + 4 * i, q);
#pragma unroll
    for (int k = 0; k < 4; ++k) p[k] = a * p[k] + b * q[k];
    Vector<float>::store(out + 4 * i, p);
  }
  for (std::int64_t i = size / 4 * 4 + thread; i < size; i += stride) out[i] = a * x[i] + b * y[i];
}

}  // namespace

GpuMemory::GpuMemory(std::size_t bytes, Place place) : place_(place) {
  if (bytes == 0) return;
  if (place == Place::kHost) {
    check(cudaMallocHost(&data_, bytes), "memory for gossip");
    return;
  }
  check(cudaMalloc(&data_, bytes), "memory for gossip");
  // On the default stream, which others do not wait for.
  const cudaError_t cleared = cudaMemset(data_, 0, bytes);
  const cudaError_t done = cleared == cudaSuccess ? cudaStreamSynchronize(nullptr) : cleared;
  if (done != cudaSuccess) cudaFree(data_);
  check(done, "memory for gossip");
}

GpuMemory::~GpuMemory() { place_ == Place::kHost ? cudaFreeHost(data_) : cudaFree(data_); }

GpuEvent::GpuEvent() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
}

GpuEvent::~GpuEvent() { cudaEventDestroy(event_); }

void GpuEvent::record(CUstream_st* stream) { check(cudaEventRecord(event_, stream), "an event"); }

void GpuEvent::hold(CUstream_st* stream) const {
  check(cudaStreamWaitEvent(stream, event_, 0), "to wait for an event");
}

void GpuEvent::wait() const { check(cudaEventSynchronize(event_), "to wait for an event"); }

void copy_and_wait(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
  check(cudaStreamSynchronize(stream), "a copy");
}

bool in_gpu_memory(const void* address) {
  cudaPointerAttributes place = {};
  check(cudaPointerGetAttributes(&place, address), "to say where a vector is");
  return place.type == cudaMemoryTypeDevice;
}

void clear(std::span<float> y, CUstream_st* stream) {
  check(cudaMemsetAsync(y.data(), 0, y.size_bytes(), stream), "to clear a vector");
}

void copy(std::span<const float> from, std::span<float> to, CUstream_st* stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDeviceToDevice, stream),
        "a copy");
}

void combine(std::span<float> out, float a, const float* x, float b, const float* y,
             CUstream_st* stream) {
  const auto size = static_cast<std::int64_t>(out.size());
  combine_kernel<<<blocks_for((size + 3) / 4, kThreads), kThreads, 0, stream>>>(out.data(), a, x, b, y, size);
  check_launch("a sum of vectors");
}

}  // namespace cohort::kernels
