#include "kernels/gossip.h"
#include "kernels/launch.cuh"
#include "kernels/vectors.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;
__global__ void __launch_bounds__(kThreads)
    combine_kernel(float* out, float a, const float* x, float b, const float* y,
                   std::int64_t size) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < size / 4; i += stride) {
    float p[4], q[4];
    load<float>(x + 4 * i, p);
    load<float>(y + 4 * i, q);
#pragma unroll
    for (int k = 0; k < 4; ++k) p[k] = a * p[k] + b * q[k];
    Vector<float>::store(out + 4 * i, p);
  }
  for (std::int64_t i = size / 4 * 4 + thread; i < size; i += stride) out[i] = a * x[i] + b * y[i];
}

}  // namespace

void clear(std::span<float> y, CUstream_st* stream) {
  check(cudaMemsetAsync(y.data(), 0, y.size_bytes(), stream), "to clear a vector");
}

void copy(std::span<const float> from, std::span<float> to, CUstream_st* stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDeviceToDevice, stream),
        "a copy");
}

void combine(std::span<float> out, float a, const float* x, float b, const float* y,
             CUstream_st* stream) {
  const auto size = static_cast<std::int64_t>(out.size());
  combine_kernel<<<blocks_for((size + 3) / 4, kThreads), kThreads, 0, stream>>>(out.data(), a, x, b, y, size);
  check_launch("a sum of vectors");
}

}  // namespace cohort::kernels
