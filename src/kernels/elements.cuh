// top-k and random-k on a GPU: some elements of each tensor, and where they are.
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

// top-k: a block for each tensor finds the magnitude of its k-th largest element, bits from the top
// in three steps of a histogram, and then collects in order: all above it, and of those equal to it
// as many as are wanted, the lower elements first.
constexpr int kWide = 1024;  // threads
constexpr int kBins = 2 * kWide;
constexpr int kEach = 4;  // elements that a thread takes at once

__device__ unsigned magnitude_of(float value) { return __float_as_uint(value) & 0x7fffffffU; }

// The sum of `mine` over this thread and those before it.
__device__ unsigned sum_up_to_here(unsigned mine, unsigned (&warps)[32]) {
  const unsigned lane = threadIdx.x % 32;
  for (unsigned far = 1; far < 32; far *= 2) {
    const unsigned other = __shfl_up_sync(~0U, mine, far);
    if (lane >= far) mine += other;
  }
  __syncthreads();  // nobody reads what was there before
  if (lane == 31) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  for (unsigned warp = 0; warp < threadIdx.x / 32; ++warp) mine += warps[warp];
  return mine;
}

// In which bin the element is that `wanted` ones reach, counted from the highest; and how many of
// it are in that bin.
struct Found {
  unsigned bin;
  unsigned wanted;
};

__device__ Found find_bin(const unsigned (&bins)[kBins], unsigned wanted, unsigned (&warps)[32],
                          Found& shared) {
  const unsigned upper = kBins - 1 - 2 * threadIdx.x;
  const unsigned both = bins[upper] + bins[upper - 1];
  const unsigned before = sum_up_to_here(both, warps) - both;
  if (before < wanted && wanted <= before + both) {
    const bool first = wanted <= before + bins[upper];
    shared = first ? Found{upper, wanted - before}
                   : Found{upper - 1, wanted - before - bins[upper]};
  }
  __syncthreads();
  return shared;
}

__global__ void __launch_bounds__(kWide)
    take_largest(const Tensor* tensors, const float* x, float* values, unsigned* elements,
                 Count sequence, Count* infinite) {
  __shared__ unsigned bins[kBins];
  __shared__ unsigned warps[32];
  __shared__ Found shared;
  const Tensor tensor = tensors[blockIdx.x];
  if (tensor.size == 0) return;
  const float* from = x + tensor.begin;
  unsigned known = 0;  // the upper bits of the magnitude that is looked for
  auto wanted = static_cast<unsigned>(tensor.kept);
  bool finite = true;
  for (int step = 0; step < 3; ++step) {
    const int shift = 20 - 10 * step;
    const unsigned mask = step == 0 ? 0x7ffU : 0x3ffU;
    __syncthreads();
    bins[threadIdx.x] = bins[threadIdx.x + kWide] = 0;
    __syncthreads();
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < tensor.size; i += kWide) {
      const unsigned magnitude = magnitude_of(from[i]);
      finite &= magnitude < 0x7f800000U;
      const bool fits = step == 0 || magnitude >> (shift + 10) == known;
      if (fits) atomicAdd(&bins[magnitude >> shift & mask], 1U);
    }
    __syncthreads();
    const Found found = find_bin(bins, wanted, warps, shared);
    known = step == 0 ? found.bin : known << 10 | found.bin;
    wanted = found.wanted;
  }
  if (!finite) atomicMin(infinite, sequence);
  values += tensor.first_kept;
  elements += tensor.first_kept;
  unsigned above = 0;  // of what came before
  unsigned equal = 0;
  for (std::int64_t base = 0; base < tensor.size; base += kEach * kWide) {
    const std::int64_t first = base + kEach * static_cast<std::int64_t>(threadIdx.x);
    float here[kEach];
    unsigned mine = 0;  // counts of both: those above in the lower half
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      here[k] = first + k < tensor.size ? from[first + k] : 0.0F;
      if (first + k >= tensor.size) continue;
      mine += magnitude_of(here[k]) > known ? 1U : magnitude_of(here[k]) == known ? 1U << 16 : 0U;
    }
    const unsigned sum = sum_up_to_here(mine, warps);
    unsigned n = above + ((sum - mine) & 0xffffU);
    unsigned m = equal + ((sum - mine) >> 16);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (first + k >= tensor.size || magnitude_of(here[k]) < known) continue;
      const bool tie = magnitude_of(here[k]) == known;
      if (!tie || m < wanted) {
        const unsigned to = n + min(m, wanted);
        values[to] = here[k];
        elements[to] = static_cast<unsigned>(tensor.begin + first + k);
      }
      tie ? ++m : ++n;
    }
    // The last thread's sum is that of all.
    if (threadIdx.x == kWide - 1) shared = {sum & 0xffffU, sum >> 16};
    __syncthreads();
    above += shared.bin;
    equal += shared.wanted;
  }
}

}  // namespace
}  // namespace cohort::kernels
