// Encodes a vector in fewer bytes, with a bounded error.
//
// encode() gives exactly the bytes that go on the wire, so their number is the honest cost.
// Compressors keep no memory: not of earlier vectors (methods/error_feedback.h does), and not of
// random numbers, which are drawn anew from the seed and the message's key. One object per rank;
// encode() from one thread at a time; the const functions may run on several threads.
//
// The length of the vector is not on the wire: both sides know it, and with it a decoder knows
// where the bytes of a vector end, so that vectors follow each other without any framing
// (model_codec.h). Numbers on the wire are little-endian. An empty vector takes no bytes.
//
// What bytes decode to is the same bits on every machine, whatever instructions it has: sender and
// receivers keep copies of one state and must never drift apart. So is what is encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/types.h"

namespace cohort::compressors {

// What a message is about. Both sides know it, so what is drawn at random from it is not sent, and
// nothing has to be remembered.
struct MessageKey {
  Rank sender = 0;
  std::uint64_t sequence = 0;  // of this sender's messages
  std::uint64_t tensor = 0;    // which tensor of the model
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual std::string_view name() const = 0;

  // Appends to `wire`. `dense` is not changed. It should be finite: bytes of one that is not are
  // unspecified, and decode() refuses them where they show it.
  virtual void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) = 0;

  // Fills `dense` with the vector of its length that stands at the front of `wire` and returns how
  // many bytes it took. Never reads past `wire`. Throws PeerError when the bytes cannot have come
  // from encode() of a finite vector of that length; `dense` then holds unspecified values. Any
  // bytes are safe: they come from other processes. All values are finite.
  virtual std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                             std::span<float> dense) const = 0;

  // As decode(), but adds `weight` times the vector: dense[i] becomes dense[i] + weight * value[i],
  // both operations rounded to float32 (never fused), value[i] being bit for bit what decode()
  // gives. A sparse() compressor leaves the elements that were not sent as they are. On PeerError
  // `dense` is unchanged.
  virtual std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key,
                                 float weight, std::span<float> dense) const = 0;

  // Most elements are not sent and decode to exactly 0.
  virtual bool sparse() const = 0;

  // The delta in [0, 1] for which E|C(x) - x|^2 <= (1 - delta) |x|^2 for every x of `numel`
  // elements, up to rounding; 1 means lossless, 0 that nothing is promised (an unbiased compressor
  // may even add more than |x|^2).
  virtual double contraction(std::int64_t numel) const = 0;

  // No vector of `numel` elements is encoded in more bytes.
  virtual std::size_t max_encoded_bytes(std::int64_t numel) const = 0;
};

}  // namespace cohort::compressors
