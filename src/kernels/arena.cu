#include <algorithm>
#include <array>

#include "kernels/arena.h"
#include "kernels/launch.cuh"
#include "kernels/vectors.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;
// One element's step; what it subtracts is returned. State that an optimizer has none of is 0.
struct Sgd {
  SgdFactors f;
  __device__ float keep() const { return 1; }
  __device__ float lost() const { return 0; }
  __device__ float step(float p, float g, float& m, float&) const {
    m = f.mu * m + (f.scale * g + f.decay * p);
    return f.lr * m;
  }
};

struct Nesterov {
  SgdFactors f;
  __device__ float keep() const { return 1; }
  __device__ float lost() const { return 0; }
  __device__ float step(float p, float g, float& m, float&) const {
    const float d = f.scale * g + f.decay * p;
    m = f.mu * m + d;
    return f.lr * (d + f.mu * m);
  }
};

struct Adam {
  AdamFactors f;
  __device__ float keep() const { return f.keep; }
  __device__ float lost() const { return f.lost; }
  __device__ float step(float p, float g, float& a, float& s) const {
    const float d = f.scale * g + f.decay * p;
    a = f.beta1 * a + (1.0F - f.beta1) * d;
    s = f.beta2 * s + (1.0F - f.beta2) * d * d;
    return f.step_size * a / (sqrtf(s) * f.root_correction + f.epsilon);
  }
};

template <class Optimizer>
__device__ void take_step(const Optimizer& optimizer, float& p, float g, float& a, float& s,
                          float& move) {
  const float along = optimizer.step(p, g, a, s);
  move = optimizer.lost() * p + along;
  p = optimizer.keep() * p - along;
}

template <class Optimizer>
__global__ void __launch_bounds__(kThreads) step_kernel(UpdateVectors v, Optimizer optimizer) {
  constexpr int kSize = Vector<float>::kSize;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t vectors = v.size / kSize;
  for (std::int64_t i = thread; i < vectors; i += stride) {
    float p[kSize], g[kSize], a[kSize] = {}, s[kSize] = {}, moves[kSize];
    load<float>(v.parameters + i * kSize, p);
    load<float>(v.gradients + i * kSize, g);
    if (v.first != nullptr) load<float>(v.first + i * kSize, a);
    if (v.second != nullptr) load<float>(v.second + i * kSize, s);
#pragma unroll
    for (int k = 0; k < kSize; ++k) take_step(optimizer, p[k], g[k], a[k], s[k], moves[k]);
    Vector<float>::store(v.parameters + i * kSize, p);
    if (v.first != nullptr) Vector<float>::store(v.first + i * kSize, a);
    if (v.second != nullptr) Vector<float>::store(v.second + i * kSize, s);
    if (v.moves != nullptr) Vector<float>::store(v.moves + i * kSize, moves);
  }
  for (std::int64_t i = vectors * kSize + thread; i < v.size; i += stride) {
    float a = v.first != nullptr ? v.first[i] : 0;
    float s = v.second != nullptr ? v.second[i] : 0;
    float move = 0;
    take_step(optimizer, v.parameters[i], v.gradients[i], a, s, move);
    if (v.first != nullptr) v.first[i] = a;
    if (v.second != nullptr) v.second[i] = s;
    if (v.moves != nullptr) v.moves[i] = move;
  }
}

template <class Optimizer>
void launch_step(const UpdateVectors& vectors, const Optimizer& optimizer, cudaStream_t stream) {
  step_kernel<<<blocks_for(vectors.size / Vector<float>::kSize, kThreads), kThreads, 0, stream>>>(vectors,
                                                                                        optimizer);
  check_launch("an optimizer's step");
}

// As many as fit into the 4 KiB of a kernel's arguments.
struct Parts {
  static constexpr int kMost = 120;
  GradientPart parts[kMost];
  int count = 0;
};

// Each part is cut into pieces of kPiece, which the blocks take in turn.
constexpr std::int64_t kPiece = 16 * kThreads;

template <int kSize>
__device__ void put(float* to, const float (&values)[kSize], bool add) {
#pragma unroll
  for (int k = 0; k < kSize; k += 4) {
    float4 sum = make_float4(values[k], values[k + 1], values[k + 2], values[k + 3]);
    float4* place = reinterpret_cast<float4*>(to + k);
    if (add) {
      const float4 there = *place;
      sum.x += there.x, sum.y += there.y, sum.z += there.z, sum.w += there.w;
    }
    *place = sum;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const __grid_constant__ Parts all, float* arena) {
  constexpr int kSize = Vector<T>::kSize;
  constexpr int kLoads = kPiece / (kThreads * kSize);  // of a thread, for a whole piece
  const auto grid = static_cast<int>(gridDim.x);
  int next =
      static_cast<int>(blockIdx.x);  // this block's next piece, counted from the part's first
  for (int n = 0; n < all.count; ++n) {
    const GradientPart& part = all.parts[n];
    const auto pieces = static_cast<int>((part.size + kPiece - 1) / kPiece);
    float* to = arena + part.to;
    const T* from = static_cast<const T*>(part.from);
    for (; next < pieces; next += grid) {
      const std::int64_t begin = next * kPiece;
      const std::int64_t end = min(part.size, begin + kPiece);
      std::int64_t i = begin + threadIdx.x * kSize;
      if (from != nullptr && end - begin == kPiece) {
        float values[kLoads][kSize];
#pragma unroll
        for (int k = 0; k < kLoads; ++k) load(from + i + k * kThreads * kSize, values[k]);
#pragma unroll
        for (int k = 0; k < kLoads; ++k) put(to + i + k * kThreads * kSize, values[k], part.add);
        continue;
      }
      for (; i + kSize <= end; i += kThreads * kSize) {
        float values[kSize] = {};
        if (from != nullptr) load(from + i, values);
        put(to + i, values, part.add);
      }
      for (; i < end; ++i) {  // at most one thread has such a rest
        const float value = from != nullptr ? static_cast<float>(from[i]) : 0.0F;
        to[i] = part.add ? to[i] + value : value;
      }
    }
    next -= pieces;
  }
}

}  // namespace

void sgd_step(const UpdateVectors& vectors, const SgdFactors& factors, CUstream_st* stream) {
  factors.nesterov ? launch_step(vectors, Nesterov{factors}, stream)
                   : launch_step(vectors, Sgd{factors}, stream);
}

void adam_step(const UpdateVectors& vectors, const AdamFactors& factors, CUstream_st* stream) {
  launch_step(vectors, Adam{factors}, stream);
}

void gather_gradients(std::span<const GradientPart> parts, Element element, float* arena,
                      CUstream_st* stream) {
  while (!parts.empty()) {
    const std::size_t count = std::min<std::size_t>(parts.size(), Parts::kMost);
    Parts some;
    some.count = static_cast<int>(count);
    std::copy_n(parts.begin(), count, some.parts);
    std::int64_t pieces = 0;
    for (const GradientPart& part : parts.first(count)) pieces += (part.size + kPiece - 1) / kPiece;
    const auto kernel =
        element == Element::kFloat ? gather_kernel<float> : gather_kernel<__nv_bfloat16>;
    kernel<<<blocks_for(pieces, 1), kThreads, 0, stream>>>(some, arena);
    check_launch("the collection of gradients");
    parts = parts.subspan(count);
  }
}

}  // namespace cohort::kernels
