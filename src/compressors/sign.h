// One bit for each element: its sign, times the mean of all magnitudes.
//
//   C(x) = (|x|_1 / n) sign(x)     with sign(0) = 1 and sign(-0) = -1
//
// EF-SignSGD (Karimireddy et al. 2019, "Error Feedback Fixes SignSGD"). As
// |C(x) - x|^2 = |x|^2 - |x|_1^2 / n, the contraction is |x|_1^2 / (n |x|^2): at least 1/n (one
// element that is not zero), 2/pi for Gaussian vectors, 1 when all magnitudes are equal.
//
// Wire: nothing for n = 0, else the scale as float32, then ceil(n / 8) bytes in which bit i % 8 of
// byte i / 8 is set when element i is negative; the bits after the last element are 0.
// 4 + ceil(n / 8) bytes.
//
// Magnitudes are summed in double precision. A mean below float32's smallest normal number loses
// accuracy, and with it the contraction.
#pragma once

#include "compressors/compressor.h"

namespace cohort::compressors {

class Sign final : public Compressor {
 public:
  std::string_view name() const override { return "sign"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  double contraction(std::int64_t numel) const override {
    return numel == 0 ? 1.0 : 1.0 / static_cast<double>(numel);
  }
  std::size_t max_encoded_bytes(std::int64_t numel) const override {
    return numel == 0 ? 0 : sizeof(float) + static_cast<std::size_t>((numel + 7) / 8);
  }
};

}  // namespace cohort::compressors
