#include "kernels/launch.cuh"
#include "kernels/memory.h"

namespace cohort::kernels {

GpuMemory::GpuMemory(std::size_t bytes, Place place) : place_(place) {
  if (bytes == 0) return;
  if (place == Place::kHost) {
    check(cudaMallocHost(&data_, bytes), "memory");
    return;
  }
  check(cudaMalloc(&data_, bytes), "memory");
  // On the default stream, which others do not wait for.
  const cudaError_t cleared = cudaMemset(data_, 0, bytes);
  const cudaError_t done = cleared == cudaSuccess ? cudaStreamSynchronize(nullptr) : cleared;
  if (done != cudaSuccess) cudaFree(data_);
  check(done, "memory");
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

std::size_t free_gpu_bytes() {
  std::size_t free = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&free, &all), "to say how much memory it has");
  return free;
}

}  // namespace cohort::kernels
