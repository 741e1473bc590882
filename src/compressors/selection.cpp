#include "compressors/selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/simd.h"

namespace cohort::compressors::detail {
namespace {

constexpr std::size_t kWord = 64;              // elements looked at together
constexpr std::size_t kCandidateBlock = 4096;  // between looks at the room for candidates

// As integers the bits of magnitudes are in the order of the magnitudes.
std::uint32_t magnitude_of(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

// Writes the indices of the elements from `begin` to `end`, a multiple of 64 apart, that reach
// `floor`; returns the end of what was written.
using Collect = std::uint32_t* (*)(const float* values, std::uint32_t begin, std::uint32_t end,
                                   std::uint32_t floor, std::uint32_t* out);

inline std::uint32_t* write_indices(std::uint64_t mask, std::uint32_t base, std::uint32_t* out) {
  for (; mask != 0; mask &= mask - 1) {
    *out++ = base + static_cast<std::uint32_t>(std::countr_zero(mask));
  }
  return out;
}

#if defined(__x86_64__)
std::uint32_t* collect_by_fours(const float* values, std::uint32_t begin, std::uint32_t end,
                                std::uint32_t floor, std::uint32_t* out) {
  const __m128i magnitude = _mm_set1_epi32(0x7fffffff);
  const __m128i below = _mm_set1_epi32(static_cast<int>(floor) - 1);
  for (std::uint32_t i = begin; i < end; i += kWord) {
    std::uint64_t mask = 0;
    for (std::uint32_t j = 0; j < kWord; j += 4) {
      const __m128i bits = _mm_castps_si128(_mm_loadu_ps(values + i + j));
      const __m128i reached = _mm_cmpgt_epi32(_mm_and_si128(bits, magnitude), below);
      mask |= static_cast<std::uint64_t>(_mm_movemask_ps(_mm_castsi128_ps(reached))) << j;
    }
    out = write_indices(mask, i, out);
  }
  return out;
}

__attribute__((target("avx2,bmi"))) std::uint32_t* collect_by_eights(const float* values,
                                                                     std::uint32_t begin,
                                                                     std::uint32_t end,
                                                                     std::uint32_t floor,
                                                                     std::uint32_t* out) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  const __m256i below = _mm256_set1_epi32(static_cast<int>(floor) - 1);
  for (std::uint32_t i = begin; i < end; i += kWord) {
    std::uint64_t mask = 0;
    for (std::uint32_t j = 0; j < kWord; j += 8) {
      const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(values + i + j));
      const __m256i reached = _mm256_cmpgt_epi32(_mm256_and_si256(bits, magnitude), below);
      const auto eight =
          static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(reached)));
      mask |= static_cast<std::uint64_t>(eight) << j;
    }
    out = write_indices(mask, i, out);
  }
  return out;
}

Collect best_collect() {
  return __builtin_cpu_supports("avx2") != 0 ? collect_by_eights : collect_by_fours;
}
#else
std::uint32_t* collect_one_by_one(const float* values, std::uint32_t begin, std::uint32_t end,
                                  std::uint32_t floor, std::uint32_t* out) {
  for (std::uint32_t i = begin; i < end; ++i) {
    *out = i;
    out += magnitude_of(values[i]) >= floor ? 1 : 0;
  }
  return out;
}

Collect best_collect() { return collect_one_by_one; }
#endif

// The largest multiple of 2^19 that at least `count` magnitudes reach.
std::uint32_t floor_by_histogram(std::span<const float> values, std::size_t count) {
  constexpr unsigned kShift = 19;
  std::array<std::size_t, 1U << (31 - kShift)> histogram{};
  for (const float value : values) ++histogram[magnitude_of(value) >> kShift];
  std::size_t reached = 0;
  std::size_t bin = histogram.size();
  while (reached < count) reached += histogram[--bin];
  return static_cast<std::uint32_t>(bin) << kShift;
}

}  // namespace

std::uint32_t Selection::sampled_floor(std::span<const float> values, std::size_t count) {
  constexpr std::size_t kLeast = 128;
  constexpr std::size_t kMax = 16384;
  const std::size_t size = std::clamp(values.size() / 32, kLeast, kMax);
  const double expected =
      static_cast<double>(size) * static_cast<double>(count) / static_cast<double>(values.size());
  // Four standard deviations more than expected: seldom too few, never many too many.
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 2);
  if (values.size() < 4 * kLeast || rank >= size) return 0;
  magnitudes_.resize(size);
  const std::size_t stride = values.size() / size;
  for (std::size_t i = 0; i < size; ++i) magnitudes_[i] = magnitude_of(values[i * stride]);
  const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(magnitudes_.begin(), nth, magnitudes_.end(), std::greater<>());
  return *nth;
}

void Selection::collect(std::span<const float> values, std::uint32_t floor) {
  const Collect collect_some = best_collect();
  found_ = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kCandidateBlock) {
    if (candidates_.size() < found_ + kCandidateBlock)
      candidates_.resize(2 * found_ + kCandidateBlock);
    const std::size_t end = std::min(begin + kCandidateBlock, values.size());
    const std::size_t words_end = end - (end - begin) % kWord;
    std::uint32_t* out =
        collect_some(values.data(), static_cast<std::uint32_t>(begin),
                     static_cast<std::uint32_t>(words_end), floor, candidates_.data() + found_);
    for (std::size_t i = words_end; i < end; ++i) {
      if (magnitude_of(values[i]) >= floor) *out++ = static_cast<std::uint32_t>(i);
    }
    found_ = static_cast<std::size_t>(out - candidates_.data());
  }
}

void Selection::narrow(std::span<const float> values, std::size_t count, std::uint32_t floor) {
  if (found_ == count) return;
  magnitudes_.resize(found_);
  std::size_t above = 0;  // magnitudes that are more than the least of those taken
  for (std::size_t i = 0; i < found_; ++i) {
    magnitudes_[i] = magnitude_of(values[candidates_[i]]);
    above += magnitudes_[i] > floor ? 1 : 0;
  }
  std::uint32_t least = floor;
  if (above >= count) {  // else many are equal, as in a vector of zeros, and need no order
    const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(magnitudes_.begin(), nth, magnitudes_.end(), std::greater<>());
    least = *nth;
    above = static_cast<std::size_t>(
        std::count_if(magnitudes_.begin(), nth, [&](std::uint32_t each) { return each > least; }));
  }
  std::size_t equals = count - above;  // of those that are equal to the least, the first
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found_; ++i) {
    const std::uint32_t magnitude = magnitude_of(values[candidates_[i]]);
    const bool equal = magnitude == least && equals > 0;
    equals -= equal ? 1 : 0;
    candidates_[kept] = candidates_[i];
    kept += magnitude > least || equal ? 1 : 0;
  }
  found_ = kept;
}

std::span<const std::uint32_t> Selection::largest(std::span<const float> values,
                                                  std::size_t count) {
  if (count == 0) return {};
  std::uint32_t floor = count == values.size() ? 0 : sampled_floor(values, count);
  collect(values, floor);
  if (found_ < count) {
    floor = floor_by_histogram(values, count);
    collect(values, floor);
  }
  narrow(values, count, floor);
  return {candidates_.data(), found_};
}

}  // namespace cohort::compressors::detail
