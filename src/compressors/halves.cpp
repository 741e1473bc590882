#include "compressors/halves.h"

#include "core/simd.h"

namespace cohort::detail {
namespace {

COHORT_SIMD_CLONES std::uint32_t count_all_set(const std::byte* bytes, std::size_t numel,
                                               std::uint16_t mask) {
  constexpr std::size_t kBlock = 1024;  // what 16 bits count without overflow
  std::uint32_t found = 0;
  for (std::size_t begin = 0; begin < numel; begin += kBlock) {
    const std::size_t end = begin + kBlock < numel ? begin + kBlock : numel;
    std::uint16_t here = 0;
    for (std::size_t i = begin; i < end; ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, bytes + i * sizeof half, sizeof half);
      here = static_cast<std::uint16_t>(here + ((half & mask) == mask ? 1 : 0));
    }
    found += here;
  }
  return found;
}

}  // namespace

void check_halves(std::string_view compressor, std::span<const std::byte> wire, std::size_t numel,
                  std::uint16_t exponent) {
  check_length(compressor, wire, numel * sizeof(std::uint16_t));
  if (count_all_set(wire.data(), numel, exponent) != 0) {
    refuse(compressor, "a value that is not finite");
  }
}

}  // namespace cohort::detail
