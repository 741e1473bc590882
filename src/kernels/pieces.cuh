// How a vector of tensors is shared out to blocks, and what these have in common.
#pragma once

#include <cstdint>
#include <limits>

namespace cohort::kernels {

constexpr int kThreads = 256;
constexpr int kPiece = 8 * kThreads;
constexpr std::int64_t kGroup = 16;  // elements to which tensors are aligned
using Count = unsigned long long;    // of which there is an atomic minimum

// A block's part of a tensor.
struct Piece {
  std::int64_t begin;  // element of the vector
  int size;
  int tensor;
};

struct Tensor {
  std::int64_t begin;
  std::int64_t size;
  std::int64_t kept;
  std::int64_t first_kept;  // among those of all tensors
  double factor;
  int first_piece;
  int pieces;
};

__device__ inline bool is_finite(float value) {
  return (__float_as_uint(value) & 0x7fffffffU) < 0x7f800000U;
}

__device__ inline double sum_of_warp(double value) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0U, value, lane);
  return value;
}

// The sum over a block, in its first warp.
__device__ inline double sum_of_block(double value) {
  __shared__ double warps[kThreads / 32];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  return sum_of_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0);
}

__device__ inline float largest_of_warp(float value) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0U, value, lane));
  }
  return value;
}

// The largest over a block, in its first warp.
__device__ inline float largest_of_block(float value) {
  __shared__ float warps[kThreads / 32];
  value = largest_of_warp(value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  return largest_of_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0);
}

// A tensor's sum, in the first warp of a block.
__device__ inline double sum_of_pieces(const Tensor& tensor, const double* sums) {
  double sum = 0;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < tensor.pieces; i += kThreads) {
    sum += sums[tensor.first_piece + i];
  }
  return sum_of_block(sum);
}

}  // namespace cohort::kernels
