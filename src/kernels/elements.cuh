// random-k on a GPU, and what it has in common with top-k (largest.cuh): some elements of each tensor,
// and where they are.
#pragma once

#include <cfloat>

#include "kernels/pieces.cuh"

namespace cohort::kernels {
namespace {

__global__ void __launch_bounds__(kThreads)
    find_infinite(const Piece* pieces, const float* x, Count sequence, Count* infinite) {
  const Piece piece = pieces[blockIdx.x];
  bool finite = true;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    finite &= is_finite(x[piece.begin + i]);
  }
  if (!finite) atomicMin(infinite, sequence);
}

// A block for each tensor.
__global__ void __launch_bounds__(kThreads)
    take_drawn(const Tensor* tensors, const float* x, const unsigned* elements, float* values) {
  const Tensor tensor = tensors[blockIdx.x];
  const auto factor = static_cast<float>(tensor.factor);
  for (std::int64_t i = threadIdx.x; i < tensor.kept; i += kThreads) {
    const float value = factor * x[elements[tensor.first_kept + i]];
    values[tensor.first_kept + i] = value < -FLT_MAX ? -FLT_MAX : FLT_MAX < value ? FLT_MAX : value;
  }
}

__global__ void __launch_bounds__(kThreads)
    decode_elements(const unsigned* elements, const float* values, std::int64_t count, float keep,
                    float weight, float* y) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    const unsigned at = elements[i];
    if (keep == 1.0F || values[i] != 0.0F) y[at] = keep * y[at] + weight * values[i];
  }
}

}  // namespace
}  // namespace cohort::kernels
