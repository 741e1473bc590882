// IEEE 754 half precision: 11 significant bits, magnitudes from 2^-24 to 65504.
//
// Rounded to nearest, ties to even; what is larger than 65504 becomes 65504. Relative error at most
// 2^-11 from 2^-14 up; below, the absolute error is at most 2^-25, so that a vector of tiny numbers
// decodes to zero: no contraction is promised.
//
// Wire: 2 n bytes.
#pragma once

#include "compressors/compressor.h"

namespace cohort {

namespace detail {
// What processors without the instructions do, one number at a time; the same bits.
std::uint16_t half_of(float value);
float float_of(std::uint16_t half);  // of a finite one
}  // namespace detail

class Fp16 final : public Compressor {
 public:
  std::string_view name() const override { return "fp16"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  double contraction(std::int64_t numel) const override { return numel == 0 ? 1.0 : 0.0; }
  std::size_t max_encoded_bytes(std::int64_t numel) const override {
    return static_cast<std::size_t>(numel) * sizeof(std::uint16_t);
  }
};

}  // namespace cohort
