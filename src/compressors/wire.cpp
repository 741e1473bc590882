#include "compressors/wire.h"

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/simd.h"

namespace cohort::compressors::detail {
namespace {

// A number is not finite when all bits of its exponent are set, that is, when the magnitude's bits
// are at least those of infinity.
COHORT_SIMD_CLONES bool all_finite(const std::byte* bytes, std::size_t numel) {
  constexpr std::size_t kBlock = 1024;
  std::uint32_t largest = 0;
  std::size_t i = 0;
  for (; i + kBlock <= numel; i += kBlock) {
    for (std::size_t j = 0; j < kBlock; ++j) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes + (i + j) * sizeof bits, sizeof bits);
      bits &= 0x7fffffffU;
      largest = largest < bits ? bits : largest;
    }
  }
  for (; i < numel; ++i) {
    const std::uint32_t bits = load<std::uint32_t>(bytes + i * sizeof bits) & 0x7fffffffU;
    largest = largest < bits ? bits : largest;
  }
  return largest < 0x7f800000U;
}

}  // namespace

void check_length(std::string_view compressor, std::span<const std::byte> wire,
                  std::size_t needed) {
  if (wire.size() >= needed) return;
  refuse(compressor, std::to_string(wire.size()) + " bytes instead of " + std::to_string(needed));
}

void check_finite(std::string_view compressor, const std::byte* bytes, std::size_t numel) {
  if (!all_finite(bytes, numel)) refuse(compressor, "a value that is not finite");
}

COHORT_SIMD_CLONES void add_scaled(const float* __restrict values, float weight,
                                   float* __restrict dense, std::size_t numel) {
  for (std::size_t i = 0; i < numel; ++i) dense[i] += weight * values[i];
}

void refuse(std::string_view compressor, std::string_view what) {
  throw PeerError("a peer's message encoded by '" + std::string(compressor) + "' has " +
                  std::string(what));
}

}  // namespace cohort::compressors::detail
