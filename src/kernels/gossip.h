// Gossip in the memory of a GPU: sums of vectors, and the messages that ranks which share the GPU
// leave for each other. All calls only queue work on a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"
#include "kernels/memory.h"

namespace cohort::kernels {

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
