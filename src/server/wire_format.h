// Floats as bytes on the wire: float32 as they are, or float16 and bfloat16 rounded to nearest,
// ties to even. Little-endian. Pure functions; the same bits on every processor.
#pragma once

#include <cstddef>
#include <span>

#include "server/job_spec.h"

namespace cohort::server {

// `out` holds values.size() * bytes_each(format) bytes. What is too large for float16 becomes an
// infinity, which the receiver refuses.
void encode_floats(WireFormat format, std::span<const float> values, std::span<std::byte> out);

// `bytes` holds values.size() * bytes_each(format) bytes, at any address.
void decode_floats(WireFormat format, std::span<const std::byte> bytes, std::span<float> values);

// Neither NaN nor infinite, all of them.
bool all_finite(std::span<const float> values);

namespace detail {
// One by one, as the instructions do it many at a time: for processors without, and for tests.
std::uint16_t half_from_float(float value);
float float_from_half(std::uint16_t half);
}  // namespace detail

}  // namespace cohort::server
