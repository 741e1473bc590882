// qsgd on a GPU: src/compressors/qsgd.cpp in the same steps and precisions.
#pragma once

#include <cfloat>

#include "kernels/pieces.cuh"

namespace cohort::kernels {
namespace {

// How magnitudes become levels (compressors/packing.h).
struct Rounding {
  float prescale;
  float factor;
  int fraction_bits;
  Count key;
};

__global__ void __launch_bounds__(kThreads)
    measure(const Piece* pieces, const float* x, double* squares, float* largest) {
  const Piece piece = pieces[blockIdx.x];
  double sum = 0;
  float most = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const float value = x[piece.begin + i];
    sum += static_cast<double>(value) * static_cast<double>(value);
    most = fmaxf(most, fabsf(value));
  }
  sum = sum_of_block(sum);
  most = largest_of_block(most);
  if (threadIdx.x != 0) return;
  squares[blockIdx.x] = sum;
  largest[blockIdx.x] = most;
}

// SplitMix64 and what core/random.cpp makes of it: the key of one tensor.
__device__ Count split_mix(Count& state) {
  Count z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

__device__ Count rotated(Count value, int bits) { return value << bits | value >> (64 - bits); }

__device__ Count mixed(Count key, Count number) {
  Count state = key ^ rotated(number, 29);
  const Count first = split_mix(state);
  return first ^ rotated(split_mix(state), 17) ^ number;
}

__global__ void __launch_bounds__(kThreads)
    choose_rounding(const Tensor* tensors, const double* squares, const float* largest,
                    unsigned levels, Count key, Rounding* roundings, float* units, Count sequence,
                    Count* infinite) {
  const Tensor tensor = tensors[blockIdx.x];
  const double exact = sqrt(sum_of_pieces(tensor, squares));
  float most = 0;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < tensor.pieces; i += kThreads) {
    most = fmaxf(most, largest[tensor.first_piece + i]);
  }
  most = largest_of_block(most);
  if (threadIdx.x != 0) return;
  Rounding rounding = {0, 0, 31 - (32 - __clz(static_cast<int>(levels))),
                       mixed(key, static_cast<Count>(blockIdx.x))};
  const auto norm = static_cast<float>(exact < static_cast<double>(FLT_MAX) ? exact : FLT_MAX);
  float unit = 0;
  if (!isfinite(exact)) {
    atomicMin(infinite, sequence);
  } else if (norm > 0) {
    const auto top = static_cast<float>(levels << rounding.fraction_bits);
    const int exponent = min(max(-ilogbf(norm), -126), 126);
    rounding.prescale = ldexpf(1.0F, exponent);
    rounding.factor =
        static_cast<float>(static_cast<double>(top) / ldexp(static_cast<double>(norm), exponent));
    while (most * rounding.prescale * rounding.factor > top) {
      rounding.factor = nextafterf(rounding.factor, 0.0F);
    }
    unit = static_cast<float>(tensor.factor * static_cast<double>(norm) / levels);
    if (!is_finite(unit * static_cast<float>(levels))) unit = nextafterf(unit, 0.0F);
  }
  roundings[blockIdx.x] = rounding;
  units[blockIdx.x] = unit;
}

// A level with its sign in the upper bit: `Level` is as short as leaves a bit for it.
template <class Level>
__global__ void __launch_bounds__(kThreads)
    encode_levels(const Piece* pieces, const Tensor* tensors, const Rounding* roundings,
                  const float* x, Level* levels) {
  constexpr int kSign = 8 * sizeof(Level) - 1;
  const Piece piece = pieces[blockIdx.x];
  const Rounding rounding = roundings[piece.tensor];
  const std::int64_t first = piece.begin - tensors[piece.tensor].begin;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const unsigned bits = __float_as_uint(x[piece.begin + i]);
    const float magnitude = __uint_as_float(bits & 0x7fffffffU);
    const auto y = static_cast<unsigned>(
        static_cast<int>(magnitude * rounding.prescale * rounding.factor));
    auto random = static_cast<unsigned>(first + i);
    random += static_cast<unsigned>(rounding.key);
    random *= 0x9e3779b1U;
    random ^= random >> 15;
    random ^= static_cast<unsigned>(rounding.key >> 32);
    random *= 0x846ca68bU;
    random >>= 32 - rounding.fraction_bits;
    levels[piece.begin + i] =
        static_cast<Level>((y + random) >> rounding.fraction_bits | bits >> 31 << kSign);
  }
}

template <class Level>
__global__ void __launch_bounds__(kThreads)
    decode_levels(const Piece* pieces, const float* units, const Level* levels, float keep,
                  float weight, float* y) {
  constexpr int kSign = 8 * sizeof(Level) - 1;
  const Piece piece = pieces[blockIdx.x];
  const float unit = units[piece.tensor];
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const std::int64_t at = piece.begin + i;
    const unsigned code = levels[at];
    const unsigned level = code & ((1U << kSign) - 1);
    const float size = static_cast<float>(static_cast<int>(level)) * unit;
    const float value = __uint_as_float(__float_as_uint(size) | code >> kSign << 31);
    y[at] = keep * y[at] + weight * value;
  }
}

}  // namespace
}  // namespace cohort::kernels
