// A compressor applied tensor by tensor to the flat vector of a model.
//
// Per tensor, because tensors differ in scale: one mean magnitude or norm for a whole model would
// drown the small ones. The bytes of the tensors follow each other in order, without framing.
// encode() is used from one thread at a time; the const functions may run on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compressors/compressor.h"
#include "core/types.h"

namespace cohort::compressors {

class ModelCodec {
 public:
  // `tensors` follow each other from 0 to the length of the model's vector.
  ModelCodec(std::unique_ptr<Compressor> compressor, std::vector<Range> tensors);

  // All vectors called `model` have numel() elements. Sender and sequence are those of the
  // message, the same on both sides (MessageKey). encode() replaces the content of `wire`, whose
  // memory is reused.
  void encode(std::span<const float> model, Rank sender, std::uint64_t sequence, Bytes& wire);

  // Throws PeerError that names the sender when a tensor's bytes are refused and when bytes are
  // missing or left over; `model` then holds unspecified values.
  void decode(std::span<const std::byte> wire, Rank sender, std::uint64_t sequence,
              std::span<float> model) const;

  // As decode(), but adds `weight` times what the bytes stand for, by the rules of
  // Compressor::decode_add(). On PeerError some tensors may have been added to.
  void decode_add(std::span<const std::byte> wire, Rank sender, std::uint64_t sequence,
                  float weight, std::span<float> model) const;

  std::size_t numel() const { return numel_; }
  std::size_t max_encoded_bytes() const { return max_encoded_bytes_; }
  bool sparse() const { return compressor_->sparse(); }
  // Over the whole vector: that of the tensor with the least.
  double contraction() const;
  const Compressor& compressor() const { return *compressor_; }
  std::span<const Range> tensors() const { return tensors_; }

 private:
  // Calls take(bytes, key, elements) for each tensor, which returns the bytes it took.
  template <class Take>
  void walk(std::span<const std::byte> wire, MessageKey key, std::span<float> model,
            Take&& take) const;

  std::unique_ptr<Compressor> compressor_;
  std::vector<Range> tensors_;
  std::size_t numel_ = 0;
  std::size_t max_encoded_bytes_ = 0;
};

}  // namespace cohort::compressors
