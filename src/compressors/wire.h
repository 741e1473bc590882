// What the encoders of this layer share.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

namespace cohort::detail {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// Throws PeerError that names the compressor unless `wire` has `expected` bytes.
void check_length(std::string_view compressor, std::span<const std::byte> wire,
                  std::size_t expected);

// Throws PeerError: `compressor` found `what` on the wire.
[[noreturn]] void refuse(std::string_view compressor, std::string_view what);

}  // namespace cohort::detail
