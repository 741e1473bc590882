#include "compressors/sign.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "compressors/wire.h"

namespace cohort::compressors {
namespace {

constexpr std::size_t kWord = 64;  // elements packed at a time

// Sixteen sums of magnitudes side by side, that of element i in sum i % 16: vectors can hold them,
// and the result does not depend on how wide a vector the machine has.
constexpr std::size_t kSums = 16;
using Sums = std::array<double, kSums>;

// Adds up to 64 elements, beginning with sum 0; bit j of the result is the sign of values[j].
std::uint64_t pack_some(const float* values, std::size_t count, Sums& sums) {
  std::uint64_t word = 0;
  for (std::size_t j = 0; j < count; ++j) {
    word |= static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(values[j]) >> 31) << j;
    sums[j % kSums] += static_cast<double>(std::fabs(values[j]));
  }
  return word;
}

// The compiler does not find the instructions that gather signs by itself.
#if defined(__x86_64__)
void pack_by_fours(const float* values, std::size_t words, std::byte* out, Sums& sums) {
  const __m128d magnitude = _mm_castsi128_pd(_mm_set1_epi64x(0x7fffffffffffffff));
  __m128d totals[kSums / 2];
  for (std::size_t k = 0; k < kSums / 2; ++k) totals[k] = _mm_loadu_pd(&sums[2 * k]);
  for (std::size_t i = 0; i < words; ++i, values += kWord) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < kWord; j += kSums) {
      for (std::size_t k = 0; k < 4; ++k) {
        const __m128 four = _mm_loadu_ps(values + j + 4 * k);
        const __m128d low = _mm_and_pd(_mm_cvtps_pd(four), magnitude);
        const __m128d high = _mm_and_pd(_mm_cvtps_pd(_mm_movehl_ps(four, four)), magnitude);
        totals[2 * k] = _mm_add_pd(totals[2 * k], low);
        totals[2 * k + 1] = _mm_add_pd(totals[2 * k + 1], high);
        word |= static_cast<std::uint64_t>(_mm_movemask_ps(four)) << (j + 4 * k);
      }
    }
    detail::store(out + i * sizeof word, word);
  }
  for (std::size_t k = 0; k < kSums / 2; ++k) _mm_storeu_pd(&sums[2 * k], totals[k]);
}

__attribute__((target("avx2"))) void pack_by_eights(const float* values, std::size_t words,
                                                    std::byte* out, Sums& sums) {
  const __m256d magnitude = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7fffffffffffffff));
  __m256d totals[kSums / 4];
  for (std::size_t k = 0; k < kSums / 4; ++k) totals[k] = _mm256_loadu_pd(&sums[4 * k]);
  for (std::size_t i = 0; i < words; ++i, values += kWord) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < kWord; j += kSums) {
      for (std::size_t k = 0; k < kSums / 4; ++k) {
        const __m256d four = _mm256_cvtps_pd(_mm_loadu_ps(values + j + 4 * k));
        totals[k] = _mm256_add_pd(totals[k], _mm256_and_pd(four, magnitude));
      }
      const auto low = static_cast<unsigned>(_mm256_movemask_ps(_mm256_loadu_ps(values + j)));
      const auto high = static_cast<unsigned>(_mm256_movemask_ps(_mm256_loadu_ps(values + j + 8)));
      word |= static_cast<std::uint64_t>(low | high << 8) << j;
    }
    detail::store(out + i * sizeof word, word);
  }
  for (std::size_t k = 0; k < kSums / 4; ++k) _mm256_storeu_pd(&sums[4 * k], totals[k]);
}

void pack_words(const float* values, std::size_t words, std::byte* out, Sums& sums) {
  const auto pack = __builtin_cpu_supports("avx2") != 0 ? pack_by_eights : pack_by_fours;
  pack(values, words, out, sums);
}
#else
void pack_words(const float* values, std::size_t words, std::byte* out, Sums& sums) {
  for (std::size_t i = 0; i < words; ++i) {
    detail::store(out + i * sizeof(std::uint64_t), pack_some(values + i * kWord, kWord, sums));
  }
}
#endif

// The scale, after everything that could be wrong was looked at.
float checked_scale(std::string_view name, std::span<const std::byte> wire, std::size_t numel) {
  detail::check_length(name, wire, sizeof(float) + (numel + 7) / 8);
  const auto scale = detail::load<float>(wire.data());
  if (!std::isfinite(scale) || std::signbit(scale)) {
    detail::refuse(name, "a scale that is negative or not finite");
  }
  const std::size_t tail = numel % 8;
  if (tail != 0 && std::to_integer<unsigned>(wire[sizeof(float) + numel / 8]) >> tail != 0) {
    detail::refuse(name, "bits set after the last element");
  }
  return scale;
}

// The eight floats of every byte come from two entries of four: bit set, the value is negative.
using Four = float __attribute__((vector_size(16)));
using Quads = std::array<Four, 16>;

Quads quads_of(float value) {
  Quads quads;
  for (unsigned bits = 0; bits < 16; ++bits) {
    for (unsigned j = 0; j < 4; ++j) quads[bits][j] = (bits >> j & 1) != 0 ? -value : value;
  }
  return quads;
}

void add_to(float* dense, const Four& values) {
  Four sum;
  std::memcpy(&sum, dense, sizeof sum);
  sum += values;
  std::memcpy(dense, &sum, sizeof sum);
}

}  // namespace

void Sign::encode(std::span<const float> dense, const MessageKey&, Bytes& wire) {
  if (dense.empty()) return;
  std::byte* out = detail::grow(wire, max_encoded_bytes(static_cast<std::int64_t>(dense.size())));
  std::byte* const signs = out + sizeof(float);
  const std::size_t words = dense.size() / kWord;
  const std::size_t rest = dense.size() % kWord;
  Sums sums{};
  pack_words(dense.data(), words, signs, sums);
  const std::uint64_t last = pack_some(dense.data() + words * kWord, rest, sums);
  std::memcpy(signs + words * sizeof last, &last, (rest + 7) / 8);
  double total = 0;
  for (const double sum : sums) total += sum;
  detail::store(out, static_cast<float>(total / static_cast<double>(dense.size())));
}

std::size_t Sign::decode(std::span<const std::byte> wire, const MessageKey&,
                         std::span<float> dense) const {
  if (dense.empty()) return 0;
  const float scale = checked_scale(name(), wire, dense.size());
  const Quads quads = quads_of(scale);
  const std::byte* in = wire.data() + sizeof scale;
  std::size_t i = 0;
  for (; i + 8 <= dense.size(); i += 8, ++in) {
    const auto bits = std::to_integer<unsigned>(*in);
    std::memcpy(dense.data() + i, &quads[bits & 15], sizeof(Four));
    std::memcpy(dense.data() + i + 4, &quads[bits >> 4], sizeof(Four));
  }
  for (std::size_t j = 0; i < dense.size(); ++i, ++j) {
    dense[i] = (std::to_integer<unsigned>(*in) >> j & 1) != 0 ? -scale : scale;
  }
  return max_encoded_bytes(static_cast<std::int64_t>(dense.size()));
}

std::size_t Sign::decode_add(std::span<const std::byte> wire, const MessageKey&, float weight,
                             std::span<float> dense) const {
  if (dense.empty()) return 0;
  const float step = weight * checked_scale(name(), wire, dense.size());
  const Quads quads = quads_of(step);
  const std::byte* in = wire.data() + sizeof(float);
  std::size_t i = 0;
  for (; i + 8 <= dense.size(); i += 8, ++in) {
    const auto bits = std::to_integer<unsigned>(*in);
    add_to(dense.data() + i, quads[bits & 15]);
    add_to(dense.data() + i + 4, quads[bits >> 4]);
  }
  for (std::size_t j = 0; i < dense.size(); ++i, ++j) {
    dense[i] += (std::to_integer<unsigned>(*in) >> j & 1) != 0 ? -step : step;
  }
  return max_encoded_bytes(static_cast<std::int64_t>(dense.size()));
}

}  // namespace cohort::compressors
