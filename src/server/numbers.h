// Numbers as little-endian bytes, and versions from the 32 bits of them that travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::server {

// `out` and `bytes` hold at least eight bytes.
inline void put_u64(std::span<std::byte> out, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

inline std::uint64_t get_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

inline std::uint32_t low_bits(std::uint64_t version) { return static_cast<std::uint32_t>(version); }

// The version nearest to `known` whose low 32 bits are `low`; 0 where that would be negative.
inline std::uint64_t version_near(std::uint64_t known, std::uint32_t low) {
  const auto difference = static_cast<std::int32_t>(low - low_bits(known));
  if (difference < 0 && known < static_cast<std::uint64_t>(-std::int64_t{difference})) return 0;
  return known + static_cast<std::uint64_t>(std::int64_t{difference});
}

}  // namespace cohort::server
