#include "compressors/halves.h"

#include <algorithm>
#include <array>

#include "compressors/wire.h"
#include "core/simd.h"

namespace cohort::compressors {
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

void Halves::encode(std::span<const float> dense, const MessageKey&, Bytes& wire) {
  format_.narrow(dense.data(), detail::grow(wire, dense.size() * sizeof(std::uint16_t)),
                 dense.size());
}

std::size_t Halves::decode(std::span<const std::byte> wire, const MessageKey&,
                           std::span<float> dense) const {
  check(wire, dense.size());
  format_.widen(wire.data(), dense.data(), dense.size());
  return dense.size() * sizeof(std::uint16_t);
}

std::size_t Halves::decode_add(std::span<const std::byte> wire, const MessageKey&, float weight,
                               std::span<float> dense) const {
  check(wire, dense.size());
  constexpr std::size_t kBlock = 2048;
  std::array<float, kBlock> values;
  for (std::size_t i = 0; i < dense.size(); i += kBlock) {
    const std::size_t count = std::min(kBlock, dense.size() - i);
    format_.widen(wire.data() + i * sizeof(std::uint16_t), values.data(), count);
    detail::add_scaled(values.data(), weight, dense.data() + i, count);
  }
  return dense.size() * sizeof(std::uint16_t);
}

void Halves::check(std::span<const std::byte> wire, std::size_t numel) const {
  detail::check_length(name(), wire, numel * sizeof(std::uint16_t));
  if (count_all_set(wire.data(), numel, format_.exponent) != 0) {
    detail::refuse(name(), "a value that is not finite");
  }
}

}  // namespace cohort::compressors
