// What the two 16-bit formats share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "compressors/wire.h"

namespace cohort::detail {

// Throws PeerError unless `wire` has `numel` numbers of 16 bits whose bits under `exponent` are not
// all set, as those of infinities and NaN are.
void check_halves(std::string_view compressor, std::span<const std::byte> wire, std::size_t numel,
                  std::uint16_t exponent);

// dense += weight * what convert(bytes, values, count) makes of the bytes, a piece at a time.
template <class Convert>
void add_halves(const std::byte* wire, float weight, std::span<float> dense, Convert&& convert) {
  constexpr std::size_t kBlock = 2048;
  std::array<float, kBlock> values;
  for (std::size_t i = 0; i < dense.size(); i += kBlock) {
    const std::size_t count = std::min(kBlock, dense.size() - i);
    convert(wire + i * sizeof(std::uint16_t), values.data(), count);
    add_scaled(values.data(), weight, dense.data() + i, count);
  }
}

}  // namespace cohort::detail
