// What every kernel launch, and every call of the CUDA runtime, is followed by.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.h"

namespace cohort::kernels {

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw RunError(std::string("the GPU refused ") + what + ": " + cudaGetErrorString(result));
}

// Blocks of so many threads for a loop over items that strides by the whole grid: a thread an item,
// but no more than keep an H200 busy.
inline unsigned blocks_for(std::int64_t items, int threads) {
  constexpr std::int64_t kMaxBlocks = 8 * 132;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + threads - 1) / threads, 1, kMaxBlocks));
}

inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

}  // namespace cohort::kernels
