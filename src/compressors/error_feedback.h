// Remembers what compression left out and adds it to the next vector.
//
//   p = x + e;   sent = C(p);   e = p - sent          (Seide et al. 2014; Karimireddy et al. 2019)
//
// so that over time everything is sent: the sum of what was sent plus the memory is the sum of the
// inputs, up to rounding. The memory starts at zero and is state that a checkpoint must hold.
// Used from one thread at a time; the codec is borrowed and outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compressors/model_codec.h"

namespace cohort {

class ErrorFeedback {
 public:
  explicit ErrorFeedback(ModelCodec& codec) : codec_(codec), e_(codec.numel()) {}

  // Encodes `input` plus the memory into `wire` as message `sequence` of `sender`, writes what its
  // receivers will decode to `sent`, and keeps the rest. Both have numel() elements; `sent` may be
  // `input`.
  void encode(std::span<const float> input, Rank sender, std::uint64_t sequence, Bytes& wire,
              std::span<float> sent);

  std::size_t numel() const { return e_.size(); }

  // To save, and to restore by writing.
  std::span<float> memory() { return e_; }
  std::span<const float> memory() const { return e_; }

 private:
  ModelCodec& codec_;
  std::vector<float> e_;
};

}  // namespace cohort
