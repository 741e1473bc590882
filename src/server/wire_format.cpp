#include "server/wire_format.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cohort::server {
namespace detail {

std::uint16_t half_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);  // a NaN stays one, and quiet
  } else if (magnitude >= 0x47800000U) {            // 65536 and beyond
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // normal as a half; 65520 carries into infinity
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Adding 0.5 puts the half's last bit where a float's last bit is, rounding to even as it goes.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  std::uint32_t bits = 0;
  if (magnitude > 0x7c00U) {
    bits = 0x7fc00000U | (magnitude << 13);
  } else if (magnitude == 0x7c00U) {
    bits = 0x7f800000U;
  } else if (magnitude >= 0x400U) {
    bits = (magnitude << 13) + 0x38000000U;
  } else {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  }
  return std::bit_cast<float>(sign | bits);
}

}  // namespace detail

namespace {

using detail::float_from_half;
using detail::half_from_float;

void to_half_one_by_one(const float* in, std::byte* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t half = half_from_float(in[i]);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

void from_half_one_by_one(const std::byte* in, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + 2 * i, sizeof half);
    out[i] = float_from_half(half);
  }
}

#if defined(__x86_64__)
// Every processor with AVX2 converts halves too.
bool has_f16c() { return __builtin_cpu_supports("avx2") != 0; }

__attribute__((target("avx2,f16c"))) void to_half_eight(const float* in, std::byte* out,
                                                        std::size_t groups) {
  for (std::size_t i = 0; i < groups; ++i) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + 8 * i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * i), halves);
  }
}

__attribute__((target("avx2,f16c"))) void from_half_eight(const std::byte* in, float* out,
                                                          std::size_t groups) {
  for (std::size_t i = 0; i < groups; ++i) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 16 * i));
    _mm256_storeu_ps(out + 8 * i, _mm256_cvtph_ps(halves));
  }
}
#else
bool has_f16c() { return false; }
void to_half_eight(const float*, std::byte*, std::size_t) {}
void from_half_eight(const std::byte*, float*, std::size_t) {}
#endif

void to_half(const float* in, std::byte* out, std::size_t n) {
  const std::size_t groups = has_f16c() ? n / 8 : 0;
  to_half_eight(in, out, groups);
  to_half_one_by_one(in + 8 * groups, out + 16 * groups, n - 8 * groups);
}

void from_half(const std::byte* in, float* out, std::size_t n) {
  const std::size_t groups = has_f16c() ? n / 8 : 0;
  from_half_eight(in, out, groups);
  from_half_one_by_one(in + 16 * groups, out + 8 * groups, n - 8 * groups);
}

COHORT_SIMD_CLONES
void to_bfloat(const float* __restrict in, std::byte* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(in[i]);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint16_t half = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : rounded);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

COHORT_SIMD_CLONES
void from_bfloat(const std::byte* __restrict in, float* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + 2 * i, sizeof half);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
}

// Without a branch in the loop, so that it vectorises.
COHORT_SIMD_CLONES
std::uint32_t count_not_finite(const float* values, std::size_t n) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < n; ++i) {
    found += (std::bit_cast<std::uint32_t>(values[i]) & 0x7f800000U) == 0x7f800000U ? 1U : 0U;
  }
  return found;
}

}  // namespace

void encode_floats(WireFormat format, std::span<const float> values, std::span<std::byte> out) {
  COHORT_CHECK(out.size() == values.size() * bytes_each(format), "the place fits the values");
  if (values.empty()) return;
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(out.data(), values.data(), out.size());
      break;
    case WireFormat::kFloat16:
      to_half(values.data(), out.data(), values.size());
      break;
    case WireFormat::kBfloat16:
      to_bfloat(values.data(), out.data(), values.size());
      break;
  }
}

void decode_floats(WireFormat format, std::span<const std::byte> bytes, std::span<float> values) {
  COHORT_CHECK(bytes.size() == values.size() * bytes_each(format), "the place fits the values");
  if (values.empty()) return;
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(values.data(), bytes.data(), bytes.size());
      break;
    case WireFormat::kFloat16:
      from_half(bytes.data(), values.data(), values.size());
      break;
    case WireFormat::kBfloat16:
      from_bfloat(bytes.data(), values.data(), values.size());
      break;
  }
}

bool all_finite(std::span<const float> values) {
  return count_not_finite(values.data(), values.size()) == 0;
}

}  // namespace cohort::server
