// Gossip in the memory of a GPU: sums of vectors, compressors applied tensor by tensor, and the
// messages that ranks which share the GPU leave for each other. Calls that do not say otherwise
// only queue work on a stream.
//
// Compressors keep what src/compressors keeps: the same elements and draws, rounded alike. Only the
// sum in a scale is added in another order, a fixed one, in double precision as there.
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

// Of the current GPU; zeros at first. Throws RunError when there is too little.
class GpuMemory {
 public:
  explicit GpuMemory(std::size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
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

enum class Code { kFloats, kBf16, kFp16, kSign };

// One rank's encoder and decoder.
class VectorCodec {
 public:
  // `tensors` are where they are in a vector, at multiples of 16 elements. What lies between them
  // is neither read nor written.
  VectorCodec(Code code, std::span<const Range> tensors, CUstream_st* stream);

  std::size_t message_bytes() const { return message_bytes_; }

  void encode(const float* x, std::uint64_t sequence, void* message);
  // y = keep y + weight Q, each operation rounded, where Q is what the message stands for.
  void decode(const void* message, float keep, float weight, float* y);

  // The lowest sequence whose x was not finite; the largest number when all were. Waits.
  std::uint64_t first_infinite();

 private:
  Code code_;
  CUstream_st* stream_;
  int tensors_ = 0;
  int pieces_ = 0;
  std::size_t message_bytes_ = 0;
  GpuMemory piece_table_;
  GpuMemory tensor_table_;
  GpuMemory partial_sums_;  // by piece
  GpuMemory infinite_;
};

}  // namespace cohort::kernels
