// Memory that kernels of ours use beside libtorch's, and moments in a stream.
#pragma once

#include <cstddef>

struct CUstream_st;  // what cudaStream_t points to
struct CUevent_st;

namespace cohort::kernels {

// Of the current GPU, zeros at first; or main memory that every GPU reads while work goes on.
// Throws RunError when there is too little.
class GpuMemory {
 public:
  enum class Place { kGpu, kHost };
  explicit GpuMemory(std::size_t bytes, Place place = Place::kGpu);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  const Place place_;
  void* data_ = nullptr;
};

class GpuEvent {
 public:
  GpuEvent();
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void record(CUstream_st* stream);
  void hold(CUstream_st* stream) const;  // what follows there, until it is reached
  void wait() const;

 private:
  CUevent_st* event_ = nullptr;
};

// Between memories of any kind; waits until it is done.
void copy_and_wait(void* to, const void* from, std::size_t bytes, CUstream_st* stream);
bool in_gpu_memory(const void* address);

// What the current GPU has left for anyone.
std::size_t free_gpu_bytes();

}  // namespace cohort::kernels
