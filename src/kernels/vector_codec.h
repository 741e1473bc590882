// The compressors of src/compressors in the memory of a GPU, all tensors of a vector at once.
//
// They keep what those keep: the same elements and draws, rounded alike. Only the sum in a scale or
// a norm is added in another order, a fixed one, in double precision as there. Messages are not
// those of the wire: numbers are where they are in a vector, or their places stand beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"
#include "kernels/gossip.h"

namespace cohort::kernels {

enum class Code { kFloats, kBf16, kFp16, kSign, kTopK, kRandomK, kQsgd };

struct CodedTensor {
  Range place;            // in a vector; begins at a multiple of 16 elements
  std::int64_t kept = 0;  // elements, of top-k and random-k
  double factor = 1;      // random-k: of what is sent; qsgd: of the norm, for the first level
};

// One rank's encoder and decoder. What lies between the tensors is neither read nor written.
class VectorCodec {
 public:
  // `levels`: of qsgd, below 2^16.
  VectorCodec(Code code, std::span<const CodedTensor> tensors, unsigned levels,
              CUstream_st* stream);

  std::size_t message_bytes() const { return message_bytes_; }

  // Where the caller puts the elements that random-k sends with this sequence, tensor by tensor,
  // before it encodes. May wait until those of an earlier message are not needed any more.
  std::span<std::uint32_t> drawn(std::uint64_t sequence);

  // `key`: from which qsgd draws, with the number of a tensor.
  void encode(const float* x, std::uint64_t sequence, std::uint64_t key, void* message);
  // y = keep y + weight Q, each operation rounded, where Q is what the message stands for. Elements
  // that it leaves out stay as they are.
  void decode(const void* message, float keep, float weight, float* y);

  // The lowest sequence whose x was not finite; the largest number when all were. Waits.
  std::uint64_t first_infinite();

 private:
  struct Drawn {
    std::unique_ptr<GpuMemory> elements;
    GpuEvent copied;
  };

  void take_largest(const float* x, std::uint64_t sequence, float* values, unsigned* elements);

  const Code code_;
  const unsigned levels_;
  CUstream_st* const stream_;
  const std::int64_t kept_;
  const std::size_t header_;  // bytes of what a message holds for each tensor
  const std::size_t message_bytes_;
  int tensors_ = 0;
  int pieces_ = 0;
  std::unique_ptr<GpuMemory> tensor_table_;
  std::unique_ptr<GpuMemory> piece_table_;
  std::unique_ptr<GpuMemory> partial_;   // sums and maxima by piece
  std::unique_ptr<GpuMemory> rounding_;  // by tensor
  int chunks_ = 0;                       // of top-k, the parts of large tensors
  std::unique_ptr<GpuMemory> chunk_table_;
  std::unique_ptr<GpuMemory> chunk_counts_;  // and a number more, of the next chunk
  std::unique_ptr<GpuMemory> searches_;      // by large tensor
  GpuMemory infinite_;
  Drawn drawn_[MessageBoard::kSlots];
};

}  // namespace cohort::kernels
