#include "compressors/fp16.h"

#include <bit>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "compressors/wire.h"

namespace cohort::compressors {
namespace detail {

std::uint16_t half_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477fe000U) {  // 65504
    half = 0x7bffU;
  } else if (magnitude >= 0x38800000U) {  // a normal number as a half, too
    half = (magnitude - 0x38000000U + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
  } else {
    // Adding 0.5 puts the half's last bit where a float's last bit is, rounding to even as it goes.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_of(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t bits =
      magnitude >= 0x400U ? (magnitude << 13) + 0x38000000U
                          : std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  return std::bit_cast<float>((half & 0x8000U) << 16 | bits);
}

}  // namespace detail

namespace {

constexpr std::uint16_t kFp16Exponent = 0x7c00;

#if defined(__x86_64__)
bool has_instructions() { return __builtin_cpu_supports("avx2") != 0; }  // and with it F16C

__attribute__((target("avx2,f16c"))) void narrow_eights(const float* in, std::byte* out,
                                                        std::size_t groups) {
  const __m256 most = _mm256_set1_ps(65504.0F);
  const __m256 least = _mm256_set1_ps(-65504.0F);
  for (std::size_t i = 0; i < groups; ++i) {
    // With the constants first: the second operand is what comes of a NaN.
    const __m256 value = _mm256_loadu_ps(in + 8 * i);
    const __m256 clamped = _mm256_max_ps(least, _mm256_min_ps(most, value));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * i),
                     _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
  }
}

__attribute__((target("avx2,f16c"))) void widen_eights(const std::byte* in, float* out,
                                                       std::size_t groups) {
  for (std::size_t i = 0; i < groups; ++i) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 16 * i));
    _mm256_storeu_ps(out + 8 * i, _mm256_cvtph_ps(halves));
  }
}
#else
bool has_instructions() { return false; }
void narrow_eights(const float*, std::byte*, std::size_t) {}
void widen_eights(const std::byte*, float*, std::size_t) {}
#endif

void narrow_to_fp16(const float* in, std::byte* out, std::size_t numel) {
  const std::size_t groups = has_instructions() ? numel / 8 : 0;
  narrow_eights(in, out, groups);
  for (std::size_t i = 8 * groups; i < numel; ++i) {
    detail::store(out + 2 * i, detail::half_of(in[i]));
  }
}

void widen_fp16(const std::byte* in, float* out, std::size_t numel) {
  const std::size_t groups = has_instructions() ? numel / 8 : 0;
  widen_eights(in, out, groups);
  for (std::size_t i = 8 * groups; i < numel; ++i) {
    out[i] = detail::float_of(detail::load<std::uint16_t>(in + 2 * i));
  }
}

}  // namespace

Fp16::Fp16() : Halves({narrow_to_fp16, widen_fp16, kFp16Exponent}) {}

}  // namespace cohort::compressors
