#include "compressors/packing.h"

#include <bit>
#include <cstring>

#include "core/simd.h"

// Vectors of eight, which the compiler makes of whatever registers an instruction set has. They are
// handed on inside this file only, by functions that are always inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace cohort::compressors::detail {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kCodes = 32;  // of a stream in a block
constexpr std::size_t kPackedBlock = kLanes * kCodes;

using Floats = float __attribute__((vector_size(32)));
using Words = std::uint32_t __attribute__((vector_size(32)));
using Integers = std::int32_t __attribute__((vector_size(32)));
using WideFloats = float __attribute__((vector_size(64)));
using WideWords = std::uint32_t __attribute__((vector_size(64)));
using WideIntegers = std::int32_t __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(64)));

#define COHORT_INLINE inline __attribute__((always_inline))

template <class Vector>
COHORT_INLINE Vector load_vector(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// The upper bits are random ones: two multiplications, whose lower bits are weak, with the halves
// of the key before and between them. Works on one word and on many.
template <class Word>
COHORT_INLINE void hash(Word& x, std::uint64_t key) {
  x += static_cast<std::uint32_t>(key);
  x *= 0x9e3779b1U;
  x ^= x >> 15;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x *= 0x846ca68bU;
}

std::uint32_t code_of(float value, std::size_t index, const Rounding& rounding, unsigned width) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffU);
  const auto y = static_cast<std::int32_t>(magnitude * rounding.prescale * rounding.factor);
  auto random = static_cast<std::uint32_t>(index);
  hash(random, rounding.key);
  random >>= 32 - rounding.fraction_bits;
  const std::uint32_t level = (static_cast<std::uint32_t>(y) + random) >> rounding.fraction_bits;
  return level | bits >> 31 << (width - 1);
}

// The same for sixteen.
COHORT_INLINE void codes_of(const float* values, std::size_t index, const Rounding& rounding,
                            unsigned width, WideWords& codes) {
  const WideWords bits = load_vector<WideWords>(values);
  const WideWords magnitude_bits = bits & 0x7fffffffU;
  const WideFloats y =
      load_vector<WideFloats>(&magnitude_bits) * rounding.prescale * rounding.factor;
  WideWords random = WideWords{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} +
                     static_cast<std::uint32_t>(index);
  hash(random, rounding.key);
  random >>= 32 - rounding.fraction_bits;
  const WideWords level =
      ((WideWords) __builtin_convertvector(y, WideIntegers) + random) >> rounding.fraction_bits;
  codes = level | (bits >> 31) << (width - 1);
}

COHORT_SIMD_CLONES void pack_blocks(const float* values, std::size_t blocks,
                                    const Rounding& rounding_in, unsigned width, std::byte* out) {
  const Rounding rounding = rounding_in;  // the compiler knows that no store changes it
  for (std::size_t i = 0; i < blocks * kPackedBlock;) {
    Words word{};
    unsigned filled = 0;
    for (std::size_t j = 0; j < kCodes; j += 2, i += 2 * kLanes) {
      WideWords both;
      codes_of(values + i, i, rounding, width, both);
      for (std::size_t half = 0; half < 2; ++half) {
        const Words codes =
            load_vector<Words>(reinterpret_cast<const std::byte*>(&both) + half * sizeof(Words));
        word |= codes << filled;
        filled += width;
        if (filled >= 32) {
          std::memcpy(out, &word, sizeof word);
          out += sizeof word;
          filled -= 32;
          // What did not fit; nothing when filled is 0, as no code has more than width bits.
          word = codes >> (width - filled);
        }
      }
    }
  }
}

COHORT_SIMD_CLONES void unpack_blocks(const std::byte* in, std::size_t blocks, unsigned width,
                                      float unit, const float* weight, float* dense) {
  const std::uint32_t level_mask = (1U << (width - 1)) - 1;
  for (std::size_t block = 0; block < blocks; ++block) {
    Words word{};
    unsigned left = 0;  // bits of `word` that were not taken
    for (std::size_t j = 0; j < kCodes; ++j, dense += kLanes) {
      Words codes = word;
      if (left < width) {
        word = load_vector<Words>(in);
        in += sizeof word;
        codes |= word << left;
        word >>= width - left;
        left += 32 - width;
      } else {
        word >>= width;
        left -= width;
      }
      const Words sign = (codes >> (width - 1)) << 31;
      const Floats size = __builtin_convertvector((Integers)(codes & level_mask), Floats) * unit;
      const Words bits = load_vector<Words>(&size) | sign;
      Floats values = load_vector<Floats>(&bits);
      if (weight != nullptr) values = load_vector<Floats>(dense) + *weight * values;
      std::memcpy(dense, &values, sizeof values);
    }
  }
}

void unpack(const std::byte* in, unsigned width, float unit, const float* weight, float* dense,
            std::size_t numel) {
  const std::size_t blocks = numel / kPackedBlock;
  unpack_blocks(in, blocks, width, unit, weight, dense);
  in += blocks * kLanes * sizeof(std::uint32_t) * width;
  std::uint64_t bits = 0;
  unsigned filled = 0;
  for (std::size_t i = blocks * kPackedBlock; i < numel; ++i) {
    for (; filled < width; filled += 8) bits |= std::to_integer<std::uint64_t>(*in++) << filled;
    const auto level = static_cast<std::int32_t>(bits & ((1U << (width - 1)) - 1));
    const float size = static_cast<float>(level) * unit;
    const float value = (bits >> (width - 1) & 1) != 0 ? -size : size;
    dense[i] = weight == nullptr ? value : dense[i] + *weight * value;
    bits >>= width;
    filled -= width;
  }
}

COHORT_SIMD_CLONES void extent_of_sixteens(const float* values, std::size_t groups, double* squares,
                                           std::uint32_t* largest) {
  Doubles low{};
  Doubles high{};
  Words most{};
  for (std::size_t i = 0; i < groups; ++i) {
    const Floats first = load_vector<Floats>(values + 16 * i);
    const Floats second = load_vector<Floats>(values + 16 * i + 8);
    const Doubles a = __builtin_convertvector(first, Doubles);
    const Doubles b = __builtin_convertvector(second, Doubles);
    low += a * a;
    high += b * b;
    const Words x = load_vector<Words>(&first) & 0x7fffffffU;
    const Words y = load_vector<Words>(&second) & 0x7fffffffU;
    const Words larger = (Words)(x > y);
    const Words two = (x & larger) | (y & ~larger);
    const Words largest_so_far = (Words)((Integers)most > (Integers)two);
    most = (most & largest_so_far) | (two & ~largest_so_far);
  }
  std::memcpy(squares, &low, sizeof low);
  std::memcpy(squares + kLanes, &high, sizeof high);
  std::memcpy(largest, &most, sizeof most);
}

}  // namespace

void pack_levels(const float* values, std::size_t numel, const Rounding& rounding, unsigned width,
                 std::byte* out) {
  const std::size_t blocks = numel / kPackedBlock;
  pack_blocks(values, blocks, rounding, width, out);
  out += blocks * kLanes * sizeof(std::uint32_t) * width;
  std::uint64_t bits = 0;
  unsigned filled = 0;
  for (std::size_t i = blocks * kPackedBlock; i < numel; ++i) {
    bits |= std::uint64_t{code_of(values[i], i, rounding, width)} << filled;
    filled += width;
    for (; filled >= 8; filled -= 8, bits >>= 8) *out++ = static_cast<std::byte>(bits);
  }
  if (filled > 0) *out = static_cast<std::byte>(bits);
}

void unpack_levels(const std::byte* in, unsigned width, float unit, float* dense,
                   std::size_t numel) {
  unpack(in, width, unit, nullptr, dense, numel);
}

void unpack_levels_add(const std::byte* in, unsigned width, float unit, float weight, float* dense,
                       std::size_t numel) {
  unpack(in, width, unit, &weight, dense, numel);
}

Extent extent_of(const float* values, std::size_t numel) {
  // Sixteen sums side by side, however wide a register is: the result is the same everywhere.
  double squares[2 * kLanes];
  std::uint32_t largest[kLanes];
  const std::size_t groups = numel / (2 * kLanes);
  extent_of_sixteens(values, groups, squares, largest);
  std::uint32_t most = 0;
  for (const std::uint32_t each : largest) most = most < each ? each : most;
  for (std::size_t i = groups * 2 * kLanes; i < numel; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU;
    most = most < bits ? bits : most;
    squares[i % (2 * kLanes)] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  Extent extent;
  for (const double each : squares) extent.squares += each;
  extent.largest = std::bit_cast<float>(most);
  return extent;
}

}  // namespace cohort::compressors::detail
