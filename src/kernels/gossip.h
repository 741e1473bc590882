// Gossip in the memory of a GPU: sums of vectors, and the messages that ranks which share the GPU
// leave for each other. Calls that do not say otherwise only queue work on a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"

struct CUstream_st;  // what cudaStream_t points to
struct CUevent_st;

namespace cohort::kernels {

// Of the current GPU, zeros at first; or main memory that the GPU reads while work goes on. Throws
// RunError when there is too little.
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

void clear(std::span<float> y, CUstream_st* stream);
void copy(std::span<const float> from, std::span<float> to, CUstream_st* stream);
// out = a x + b y, each operation rounded; all as long and aligned to 16 bytes; `out` may be x or
// y.
void combine(std::span<float> out, float a, const float* x, float b, const float* y,
             CUstream_st* stream);

// Where ranks of one process leave their messages, each in kSlots places by turns, and when they
// are written. Outlives all who use it; memory comes with a rank's first message.
class MessageBoard {
 public:
  static constexpr std::uint64_t kSlots = 3;
  struct Slot {
    std::unique_ptr<GpuMemory> memory;
    std::unique_ptr<GpuEvent> written;
  };

  explicit MessageBoard(int ranks) : slots_(static_cast<std::size_t>(ranks)) {}

  Slot& slot(Rank sender, std::uint64_t sequence) {
    return slots_[static_cast<std::size_t>(sender)].of[sequence % kSlots];
  }

 private:
  struct Slots {
    Slot of[kSlots];
  };
  std::vector<Slots> slots_;
};

}  // namespace cohort::kernels
