// CRC-32C of bytes that come in pieces. crc32c() of frame.h is the one for a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::network {

// The checksum of what `before` is the checksum of, followed by `bytes`. That of nothing is 0.
std::uint32_t crc32c_extend(std::uint32_t before, std::span<const std::byte> bytes);

// The same without the processor's instruction, for machines that lack it and for tests.
std::uint32_t crc32c_extend_by_table(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace cohort::network
