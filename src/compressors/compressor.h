// Encodes a vector in fewer bytes, with a bounded error.
//
// encode() gives exactly the bytes that go on the wire, so their number is the honest cost.
// Compressors keep no memory of earlier vectors (error_feedback.h does), but one that draws random
// numbers advances its stream with every encode(). One object per rank, used from one thread at a
// time; decode() changes nothing and may run on several threads.
//
// The length of the vector is not on the wire: both sides know it. Numbers on the wire are
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/types.h"

namespace cohort {

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual std::string_view name() const = 0;

  // Replaces the content of `wire`, whose memory is reused. `dense` is finite and not changed.
  virtual void encode(std::span<const float> dense, Bytes& wire) = 0;

  // Fills `dense` with the vector of its length that `wire` stands for. Throws PeerError when the
  // bytes cannot have come from encode() of a finite vector of that length; `dense` then holds
  // unspecified values. Any bytes are safe: they come from other processes.
  virtual void decode(std::span<const std::byte> wire, std::span<float> dense) const = 0;

  // The delta in (0, 1] for which E|C(x) - x|^2 <= (1 - delta) |x|^2 for every x of `numel`
  // elements, up to rounding; 1 means lossless.
  virtual double contraction(std::int64_t numel) const = 0;

  // No vector of `numel` elements is encoded in more bytes.
  virtual std::size_t max_encoded_bytes(std::int64_t numel) const = 0;
};

}  // namespace cohort
