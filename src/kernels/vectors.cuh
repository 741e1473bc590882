// Loads and stores of 16 bytes at once, as floats.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace cohort::kernels {

template <class T>
struct Vector;

template <>
struct Vector<float> {
  static constexpr int kSize = 4;
  using Raw = float4;
  __device__ static void unpack(const Raw& raw, float (&to)[kSize]) {
    to[0] = raw.x, to[1] = raw.y, to[2] = raw.z, to[3] = raw.w;
  }
  __device__ static void store(float* to, const float (&from)[kSize]) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  }
};

template <>
struct Vector<__nv_bfloat16> {
  static constexpr int kSize = 8;
  using Raw = uint4;
  __device__ static void unpack(const Raw& raw, float (&to)[kSize]) {
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    }
  }
  __device__ static void store(__nv_bfloat16* to, const float (&from)[kSize]) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
};

template <class T>
__device__ void load(const T* from, float (&to)[Vector<T>::kSize]) {
  Vector<T>::unpack(*reinterpret_cast<const typename Vector<T>::Raw*>(from), to);
}

}  // namespace cohort::kernels
