#include <algorithm>
#include <string>

#include "kernels/exchange.h"
#include "kernels/launch.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;

// Makes a GPU the current one of this thread until the scope ends.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) {
    check(cudaGetDevice(&before_), "to say which GPU is current");
    check(cudaSetDevice(gpu), "to be the current one");
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

// They fit into the 4 KiB of a kernel's arguments.
struct Vectors {
  float* at[RankSums::kMostVectors];
  int count = 0;
};

__device__ float plus(float a, float b) { return a + b; }
__device__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

template <class T>
__device__ void sum_at(const Vectors& vectors, std::int64_t i) {
  T sum = reinterpret_cast<const T*>(vectors.at[0])[i];
#pragma unroll 4
  for (int n = 1; n < vectors.count; ++n) {
    sum = plus(sum, reinterpret_cast<const T*>(vectors.at[n])[i]);
  }
  for (int n = 0; n < vectors.count; ++n) reinterpret_cast<T*>(vectors.at[n])[i] = sum;
}

// Elements from `begin` to `fours` by fours, if that is allowed at all; the others one by one.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const __grid_constant__ Vectors vectors, std::int64_t begin, std::int64_t fours,
               std::int64_t end) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = begin / 4 + thread; i < fours / 4; i += stride) sum_at<float4>(vectors, i);
  for (std::int64_t i = fours + thread; i < end; i += stride) sum_at<float>(vectors, i);
}

bool aligned(const float* vector) { return reinterpret_cast<std::uintptr_t>(vector) % 16 == 0; }

}  // namespace

RankSums::RankSums(int gpu) : gpu_(gpu) {
  const CurrentGpu current(gpu_);
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "to say its priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "a stream");
}

RankSums::~RankSums() { cudaStreamDestroy(stream_); }

bool RankSums::holds(const void* address) const {
  cudaPointerAttributes place = {};
  check(cudaPointerGetAttributes(&place, address), "to say where a vector is");
  return place.type == cudaMemoryTypeDevice && place.device == gpu_;
}

void RankSums::sum(std::span<float* const> vectors, Range part) {
  if (vectors.empty() || part.size == 0) return;
  COHORT_CHECK(vectors.size() <= kMostVectors, "more vectors than a kernel takes");
  const CurrentGpu current(gpu_);
  Vectors all;
  all.count = static_cast<int>(vectors.size());
  std::copy(vectors.begin(), vectors.end(), all.at);
  const bool by_fours = part.begin % 4 == 0 && std::all_of(vectors.begin(), vectors.end(), aligned);
  const std::int64_t fours = by_fours ? part.end() / 4 * 4 : part.begin;
  const std::int64_t items = by_fours ? (part.size + 3) / 4 : part.size;
  sum_kernel<<<blocks_for(items, kThreads), kThreads, 0, stream_>>>(all, part.begin, fours,
                                                                    part.end());
  check_launch("a sum over ranks");
  check(cudaStreamSynchronize(stream_), "a sum over ranks");
}

}  // namespace cohort::kernels
