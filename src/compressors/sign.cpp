#include "compressors/sign.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "compressors/wire.h"
#include "core/simd.h"

namespace cohort {
namespace {

constexpr std::size_t kWord = 64;  // elements packed at a time

// Sixteen sums side by side: vectors can hold them, and the result does not depend on how wide a
// vector the machine has.
COHORT_SIMD_CLONES double sum_of_magnitudes(const float* values, std::size_t numel) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= numel; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(std::fabs(values[i + lane]));
    }
  }
  for (; i < numel; ++i) lanes[i % kLanes] += static_cast<double>(std::fabs(values[i]));
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Bit j is the sign of values[j], of which there are `count` <= 64.
std::uint64_t pack_some(const float* values, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t j = 0; j < count; ++j) {
    word |= static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(values[j]) >> 31) << j;
  }
  return word;
}

std::uint64_t pack_word(const float* values) {
#if defined(__SSE2__)
  // The compiler does not find the instruction that gathers four signs by itself.
  std::uint64_t word = 0;
  for (std::size_t j = 0; j < kWord; j += 4) {
    word |= static_cast<std::uint64_t>(_mm_movemask_ps(_mm_loadu_ps(values + j))) << j;
  }
  return word;
#else
  return pack_some(values, kWord);
#endif
}

}  // namespace

void Sign::encode(std::span<const float> dense, Bytes& wire) {
  wire.resize(max_encoded_bytes(static_cast<std::int64_t>(dense.size())));
  if (dense.empty()) return;
  const double mean =
      sum_of_magnitudes(dense.data(), dense.size()) / static_cast<double>(dense.size());
  const auto scale = static_cast<float>(mean);
  std::memcpy(wire.data(), &scale, sizeof scale);
  std::byte* out = wire.data() + sizeof scale;
  std::size_t i = 0;
  for (; i + kWord <= dense.size(); i += kWord, out += sizeof(std::uint64_t)) {
    const std::uint64_t word = pack_word(dense.data() + i);
    std::memcpy(out, &word, sizeof word);
  }
  if (i < dense.size()) {
    const std::uint64_t word = pack_some(dense.data() + i, dense.size() - i);
    std::memcpy(out, &word, (dense.size() - i + 7) / 8);
  }
}

void Sign::decode(std::span<const std::byte> wire, std::span<float> dense) const {
  detail::check_length(name(), wire, max_encoded_bytes(static_cast<std::int64_t>(dense.size())));
  if (dense.empty()) return;
  float scale = 0;
  std::memcpy(&scale, wire.data(), sizeof scale);
  if (!std::isfinite(scale) || std::signbit(scale)) {
    detail::refuse(name(), "a scale that is negative or not finite");
  }
  const std::size_t tail = dense.size() % 8;
  if (tail != 0 && std::to_integer<unsigned>(wire.back()) >> tail != 0) {
    detail::refuse(name(), "bits set after the last element");
  }

  // The eight floats of every byte come from two table entries of four.
  std::array<std::array<float, 4>, 16> quads;
  for (unsigned bits = 0; bits < 16; ++bits) {
    for (unsigned j = 0; j < 4; ++j) quads[bits][j] = (bits >> j & 1) != 0 ? -scale : scale;
  }
  const std::byte* in = wire.data() + sizeof scale;
  std::size_t i = 0;
  for (; i + 8 <= dense.size(); i += 8, ++in) {
    const auto bits = std::to_integer<unsigned>(*in);
    std::memcpy(dense.data() + i, quads[bits & 15].data(), sizeof quads[0]);
    std::memcpy(dense.data() + i + 4, quads[bits >> 4].data(), sizeof quads[0]);
  }
  for (std::size_t j = 0; i < dense.size(); ++i, ++j) {
    dense[i] = (std::to_integer<unsigned>(*in) >> j & 1) != 0 ? -scale : scale;
  }
}

}  // namespace cohort
