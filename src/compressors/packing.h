// Signed levels packed in as few bits as they need, and the random rounding that makes them.
//
// A code of `width` bits is a level in the lower width - 1 and the sign above. Codes are packed in
// blocks of 256: code i of a block belongs to stream i % 8; the 32 codes of a stream follow each
// other in `width` little-endian words of 32 bits, least significant bits first, and word w of
// stream l is the (8 w + l)-th of the block. So eight streams advance together in one register.
// The codes after the last whole block are one stream of bits, padded with zeros to a byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort::compressors::detail {

// How to make levels of magnitudes. y = |x| * prescale * factor is the level times 2^fraction_bits;
// random bits are added below and the fraction is cut off, so that the expectation is y. Two
// factors, because one could overflow. No y may reach 2^31.
struct Rounding {
  float prescale = 0;
  float factor = 0;
  unsigned fraction_bits = 0;  // 15 to 30
  std::uint64_t key = 0;       // element i is rounded by a hash of the key and i
};

inline std::size_t packed_bytes(std::size_t numel, unsigned width) {
  return numel / 256 * (32 * std::size_t{width}) + (numel % 256 * width + 7) / 8;
}

// Writes packed_bytes(). No level may need more than width - 1 bits; 2 <= width <= 17.
void pack_levels(const float* values, std::size_t numel, const Rounding& rounding, unsigned width,
                 std::byte* out);

// dense[i] = unit * level[i] with its sign; or dense[i] += weight * that, each operation rounded.
void unpack_levels(const std::byte* in, unsigned width, float unit, float* dense,
                   std::size_t numel);
void unpack_levels_add(const std::byte* in, unsigned width, float unit, float weight, float* dense,
                       std::size_t numel);

// The sum of squares, the same bits on every machine, and the largest magnitude.
struct Extent {
  double squares = 0;
  float largest = 0;
};
Extent extent_of(const float* values, std::size_t numel);

}  // namespace cohort::compressors::detail
