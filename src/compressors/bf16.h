// The upper half of float32: 8 significant bits, the whole range.
//
// Rounded to nearest, ties to even; what would round to infinity becomes the largest finite number.
// Relative error at most 2^-8 for normal numbers, so the error of a vector is at most 2^-16 of its
// squared norm.
//
// Wire: 2 n bytes.
#pragma once

#include "compressors/compressor.h"

namespace cohort {

class Bf16 final : public Compressor {
 public:
  std::string_view name() const override { return "bf16"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  double contraction(std::int64_t numel) const override { return numel == 0 ? 1.0 : 1.0 - 0x1p-16; }
  std::size_t max_encoded_bytes(std::int64_t numel) const override {
    return static_cast<std::size_t>(numel) * sizeof(std::uint16_t);
  }
};

}  // namespace cohort
