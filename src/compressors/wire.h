// What the encoders of this layer share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "core/types.h"

namespace cohort::compressors::detail {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// Appends `count` bytes and returns where they begin.
inline std::byte* grow(Bytes& wire, std::size_t count) {
  const std::size_t before = wire.size();
  wire.resize(before + count);
  return wire.data() + before;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

// Throws PeerError that names the compressor unless `wire` has at least `needed` bytes.
void check_length(std::string_view compressor, std::span<const std::byte> wire, std::size_t needed);

// Throws PeerError unless the `numel` float32 values at `bytes` are finite.
void check_finite(std::string_view compressor, const std::byte* bytes, std::size_t numel);

// dense[i] += weight * values[i], each operation rounded.
void add_scaled(const float* values, float weight, float* dense, std::size_t numel);

// Throws PeerError: `compressor` found `what` on the wire.
[[noreturn]] void refuse(std::string_view compressor, std::string_view what);

}  // namespace cohort::compressors::detail
