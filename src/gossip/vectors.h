// Where the vectors of a gossip algorithm lie, and all that is done with them: in main memory, or
// wherever the parameters are.
//
// A vector is as long as the parameters that the caller brings, which may have padding between
// their tensors, always zero; in main memory there is none. Spans of other memory than main memory
// are handles: only this object looks at their elements.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compressors/model_codec.h"
#include "core/types.h"

namespace cohort::gossip {

class GossipVectors {
 public:
  virtual ~GossipVectors() = default;

  // A new vector of zeros, valid as long as this object.
  virtual std::span<float> make() = 0;

  virtual void clear(std::span<float> y) = 0;
  // Either may instead be a vector in main memory, which then has no padding.
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  // out = a x + b y, each operation rounded; `out` may be x or y.
  virtual void combine(std::span<float> out, float a, std::span<const float> x, float b,
                       std::span<const float> y) = 0;

  // The compressor's message of `x`, which is the one with this number of this sender; replaces the
  // content of `message`.
  virtual void encode(std::span<const float> x, Rank sender, std::uint64_t sequence,
                      Bytes& message) = 0;
  // y += weight Q, Q being what the message stands for. Both throw PeerError when it cannot be one.
  virtual void decode_add(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                          float weight, std::span<float> y) = 0;
  // y = (1 - share) y + share Q; elements that a sparse message leaves out stay as they are.
  virtual void decode_blend(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                            float share, std::span<float> y) = 0;
};

std::unique_ptr<GossipVectors> make_host_vectors(std::shared_ptr<compressors::ModelCodec> codec);

}  // namespace cohort::gossip
