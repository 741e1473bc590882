// top-k on a GPU: the k elements of each tensor that are largest in magnitude, in their order, and
// where they are.
//
// The magnitude of the k-th largest is found bits from the top, in three steps of a histogram; then
// all above it are collected, and of those equal to it as many as are wanted, the lower elements
// first. A small tensor has one block for all of this. A large one is cut into chunks, a block for
// each: the last block of a step looks into the histogram of all, and a block that collects learns
// how many elements come before its own from the blocks before it (Merrill and Garland 2016,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back"). A large tensor is read from memory
// four times.
#pragma once

#include "kernels/pieces.cuh"

namespace cohort::kernels {
namespace {

constexpr int kWide = 1024;  // threads
constexpr int kBins = 2 * kWide;
constexpr int kEach = 4;  // elements that a thread takes at once
constexpr int kChunk = 32 * kWide;
constexpr std::int64_t kLargeTensor = 4 * kChunk;        // elements from which chunks are quicker
constexpr std::int64_t kTooLarge = std::int64_t{1} << 31;  // for the counts of a Count

// What is known of a large tensor's k-th largest magnitude.
struct Search {
  unsigned bins[kBins];
  unsigned arrived;  // blocks of a step that have added theirs
  unsigned known;    // its upper bits
  unsigned wanted;   // elements of these bits that are kept
};

// A block's part of a large tensor.
struct Chunk {
  std::int64_t begin;  // element of the vector
  int size;
  int tensor;
  int search;  // the tensor's
  int first;   // chunk of the tensor, and how many it has
  int count;
};

__device__ unsigned magnitude_of(float value) { return __float_as_uint(value) & 0x7fffffffU; }

// Calls use(value) for this thread's elements.
template <class Use>
__device__ void for_elements(const float* from, std::int64_t size, Use use) {
  const std::int64_t fours = size / kEach;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < fours; i += kWide) {
    const float4 value = reinterpret_cast<const float4*>(from)[i];
    use(value.x), use(value.y), use(value.z), use(value.w);
  }
  for (std::int64_t i = fours * kEach + threadIdx.x; i < size; i += kWide) use(from[i]);
}

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

// One step's histogram of elements whose upper bits are `known`, by the bits that come next.
// Returns whether this thread's elements are finite.
template <int kStep>
__device__ bool count_magnitudes(const float* from, std::int64_t size, unsigned known,
                                 unsigned (&bins)[kBins]) {
  constexpr int kShift = 20 - 10 * kStep;
  constexpr unsigned kMask = kStep == 0 ? 0x7ffU : 0x3ffU;
  bool finite = true;
  __syncthreads();
  bins[threadIdx.x] = bins[threadIdx.x + kWide] = 0;
  __syncthreads();
  for_elements(from, size, [&](float value) {
    const unsigned magnitude = magnitude_of(value);
    finite &= magnitude < 0x7f800000U;
    const bool fits = kStep == 0 || magnitude >> (kShift + 10) == known;
    if (fits) atomicAdd(&bins[magnitude >> kShift & kMask], 1U);
  });
  __syncthreads();
  return finite;
}

// Where elements are collected, and what the tensor's magnitude to reach is.
struct Collection {
  unsigned known;
  unsigned wanted;
  float* values;
  unsigned* elements;
};

// Collects of `size` elements, the first of which is `begin` of the vector; `above` and `equal` count
// those of the tensor that came before.
__device__ void collect(const float* from, std::int64_t size, std::int64_t begin,
                        const Collection& to, unsigned above, unsigned equal,
                        unsigned (&warps)[32], Found& shared) {
  for (std::int64_t base = 0; base < size; base += kEach * kWide) {
    const std::int64_t first = base + kEach * static_cast<std::int64_t>(threadIdx.x);
    float here[kEach] = {};
    unsigned mine = 0;  // counts of both: those above in the lower half
    if (first + kEach <= size) {
      const float4 four = *reinterpret_cast<const float4*>(from + first);
      here[0] = four.x, here[1] = four.y, here[2] = four.z, here[3] = four.w;
    } else {
      for (int k = 0; k < kEach; ++k) here[k] = first + k < size ? from[first + k] : 0.0F;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (first + k >= size) continue;
      const unsigned magnitude = magnitude_of(here[k]);
      mine += magnitude > to.known ? 1U : magnitude == to.known ? 1U << 16 : 0U;
    }
    const unsigned sum = sum_up_to_here(mine, warps);
    unsigned n = above + ((sum - mine) & 0xffffU);
    unsigned m = equal + ((sum - mine) >> 16);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (first + k >= size || magnitude_of(here[k]) < to.known) continue;
      const bool tie = magnitude_of(here[k]) == to.known;
      if (!tie || m < to.wanted) {
        const unsigned place = n + min(m, to.wanted);
        to.values[place] = here[k];
        to.elements[place] = static_cast<unsigned>(begin + first + k);
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

__host__ __device__ bool is_large(const Tensor& tensor) {
  return tensor.size >= kLargeTensor && tensor.size < kTooLarge;
}

// A block for each tensor that is not large.
__global__ void __launch_bounds__(kWide)
    take_from_small(const Tensor* tensors, const float* x, float* values, unsigned* elements,
                 Count sequence, Count* infinite) {
  __shared__ unsigned bins[kBins];
  __shared__ unsigned warps[32];
  __shared__ Found shared;
  const Tensor tensor = tensors[blockIdx.x];
  if (tensor.size == 0 || is_large(tensor)) return;
  const float* from = x + tensor.begin;
  unsigned known = 0;
  auto wanted = static_cast<unsigned>(tensor.kept);
  const auto find = [&] {
    const Found found = find_bin(bins, wanted, warps, shared);
    known = known << 10 | found.bin;
    wanted = found.wanted;
  };
  const bool finite = count_magnitudes<0>(from, tensor.size, known, bins);
  if (!finite) atomicMin(infinite, sequence);
  find();
  count_magnitudes<1>(from, tensor.size, known, bins);
  find();
  count_magnitudes<2>(from, tensor.size, known, bins);
  find();
  collect(from, tensor.size, tensor.begin,
          {known, wanted, values + tensor.first_kept, elements + tensor.first_kept}, 0, 0, warps,
          shared);
}

// A step of the search in large tensors, a block for each chunk. `counts`: of the chunks, cleared
// here.
template <int kStep>
__global__ void __launch_bounds__(kWide)
    search_largest(const Chunk* chunks, const Tensor* tensors, const float* x, Search* searches,
                   Count* counts, Count sequence, Count* infinite) {
  __shared__ unsigned bins[kBins];
  __shared__ unsigned warps[32];
  __shared__ Found shared;
  __shared__ bool last;
  // Every other step begins where the one before ended: that is still in the cache.
  const unsigned at = kStep % 2 == 0 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const Chunk chunk = chunks[at];
  Search& search = searches[chunk.search];
  const unsigned known = kStep == 0 ? 0 : search.known;
  if (threadIdx.x == 0) counts[at] = 0;
  const bool finite = count_magnitudes<kStep>(x + chunk.begin, chunk.size, known, bins);
  if (kStep == 0 && !finite) atomicMin(infinite, sequence);
  for (unsigned bin = threadIdx.x; bin < kBins; bin += kWide) {
    if (bins[bin] != 0) atomicAdd(&search.bins[bin], bins[bin]);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto most = static_cast<unsigned>(chunk.count - 1);
    last = atomicInc(&search.arrived, most) == most;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (unsigned bin = threadIdx.x; bin < kBins; bin += kWide) {
    bins[bin] = __ldcg(&search.bins[bin]);
    search.bins[bin] = 0;
  }
  __syncthreads();
  const auto wanted =
      kStep == 0 ? static_cast<unsigned>(tensors[chunk.tensor].kept) : search.wanted;
  const Found found = find_bin(bins, wanted, warps, shared);
  if (threadIdx.x == 0) {
    search.known = known << 10 | found.bin;
    search.wanted = found.wanted;
  }
}

// What is known of a chunk's count: nothing at first, then that of its own elements, then that of all
// up to its end. The upper two bits say which, the others count those above and those equal.
constexpr Count kOwn = Count{1} << 62;
constexpr Count kAll = Count{2} << 62;
constexpr Count kOfCounts = kOwn - 1;

__device__ Count packed(unsigned above, unsigned equal) {
  return static_cast<Count>(equal) << 31 | above;
}

// The sum of the counts of the tensor's chunks before `at`, by the first warp. Chunks are taken in
// order, so those before are being worked on, or done.
__device__ Count sum_before(unsigned at, const Chunk& chunk, Count own, volatile Count* counts) {
  const auto lane = static_cast<int>(threadIdx.x);
  const bool first = static_cast<int>(at) == chunk.first;
  if (lane == 0) counts[at] = own | (first ? kAll : kOwn);
  Count sum = 0;
  for (int back = static_cast<int>(at) - 1 - lane; !first; back -= 32) {
    Count there = kAll;  // before the tensor's first chunk there is nothing
    while (back >= chunk.first && (there = counts[back]) == 0) {
    }
    const unsigned all = __ballot_sync(~0U, there >= kAll);
    Count part = all == 0 || lane < __ffs(all) ? there & kOfCounts : 0;
    for (int far = 16; far > 0; far /= 2) part += __shfl_xor_sync(~0U, part, far);
    sum += part;
    if (all != 0) break;
  }
  if (lane == 0 && !first) counts[at] = (sum + own) | kAll;
  return sum;
}

// Collects from large tensors: blocks take the chunks in order, so that each finds those before it
// under way. `next`: 0 before and after.
__global__ void __launch_bounds__(kWide)
    collect_largest(const Chunk* chunks, const Tensor* tensors, const float* x,
                    const Search* searches, Count* counts, unsigned* next, float* values,
                    unsigned* elements) {
  __shared__ unsigned warps[32];
  __shared__ Found shared;
  __shared__ unsigned at;
  __shared__ Count before;
  if (threadIdx.x == 0) at = atomicInc(next, gridDim.x - 1);
  __syncthreads();
  const Chunk chunk = chunks[at];
  const Search& search = searches[chunk.search];
  const unsigned known = search.known;
  const unsigned wanted = search.wanted;
  const float* from = x + chunk.begin;
  unsigned mine = 0;
  for_elements(from, chunk.size, [&](float value) {
    const unsigned magnitude = magnitude_of(value);
    mine += magnitude > known ? 1U : magnitude == known ? 1U << 16 : 0U;
  });
  const unsigned sum = sum_up_to_here(mine, warps);
  if (threadIdx.x == kWide - 1) shared = {sum & 0xffffU, sum >> 16};
  __syncthreads();
  if (threadIdx.x < 32) {
    const Count others = sum_before(at, chunk, packed(shared.bin, shared.wanted), counts);
    if (threadIdx.x == 0) before = others;
  }
  __syncthreads();
  const std::int64_t to = tensors[chunk.tensor].first_kept;
  collect(from, chunk.size, chunk.begin, {known, wanted, values + to, elements + to},
          static_cast<unsigned>(before & 0x7fffffffU), static_cast<unsigned>(before >> 31), warps,
          shared);
}

}  // namespace
}  // namespace cohort::kernels
