#include "compressors/bf16.h"

#include <bit>
#include <cstring>

#include "core/simd.h"

namespace cohort::compressors {
namespace {

constexpr std::uint16_t kBf16Exponent = 0x7f80;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kLargest = 0x7f7f0000;  // of those with 8 significant bits

COHORT_SIMD_CLONES void narrow_to_bf16(const float* __restrict in, std::byte* __restrict out,
                                       std::size_t numel) {
  for (std::size_t i = 0; i < numel; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t nearest = magnitude + 0x7fffU + (magnitude >> 16 & 1U);
    const std::uint32_t finite = nearest < kInfinity ? nearest : kLargest;
    const std::uint32_t rounded = magnitude < kInfinity ? finite : kInfinity;
    const auto half = static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | rounded >> 16);
    std::memcpy(out + i * sizeof half, &half, sizeof half);
  }
}

COHORT_SIMD_CLONES void widen_bf16(const std::byte* __restrict in, float* __restrict out,
                                   std::size_t numel) {
  for (std::size_t i = 0; i < numel; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + i * sizeof half, sizeof half);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
}

}  // namespace

Bf16::Bf16() : Halves({narrow_to_bf16, widen_bf16, kBf16Exponent}) {}

}  // namespace cohort::compressors
