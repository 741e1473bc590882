// Sums of vectors that several ranks have in the memory of one GPU.
#pragma once

#include <cstdint>
#include <span>

#include "core/types.h"

struct CUstream_st;  // what cudaStream_t points to

namespace cohort::kernels {

// One rank's: a stream of its own, ahead of what the GPU has to compute. For one thread at a time.
class RankSums {
 public:
  static constexpr std::size_t kMostVectors = 256;

  // Throws RunError when the GPU has no stream left.
  explicit RankSums(int gpu);
  ~RankSums();
  RankSums(const RankSums&) = delete;
  RankSums& operator=(const RankSums&) = delete;

  // Whether the address is in that GPU's memory.
  bool holds(const void* address) const;

  // The elements `part` of each of the vectors become their sum, added in the order given. Each is
  // read once and written once. Returns when that is done.
  void sum(std::span<float* const> vectors, Range part);

 private:
  const int gpu_;
  CUstream_st* stream_ = nullptr;
};

}  // namespace cohort::kernels
