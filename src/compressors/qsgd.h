// Every element rounded at random to one of 2^b - 1 levels of the norm.
//
//   Q(x) = c sign(x) |x|_2 / s (floor(y) + 1 with probability y - floor(y)),
//   y = s |x_i| / |x|_2,   s = 2^b - 1
//
// QSGD (Alistarh et al. 2017). Unbiased, c = 1: the expectation is the vector itself, the squared
// error at most w = min(n/s^2, sqrt(n)/s) times its squared norm, the contraction 1 - w where that
// is positive. Biased, c = 1 / (1 + w), which is also the contraction (Koloskova et al. 2019).
//
// Wire: the norm as float32 and a byte that says how many bits the levels take, as few as the
// largest can need; then for each element its level and, above it, a bit for its sign (packing.h).
// A vector of zeros has norm 0, no bits, and nothing after them. At most 5 + ceil(n (b + 1) / 8)
// bytes; in practice much fewer, as no element of a long vector comes near the norm: half of that
// for a Gaussian vector of 30,000 elements at b = 8.
//
// The randomness is drawn from the seed and the message's key. The norm is summed in double
// precision; one beyond the range of float32 is replaced by the largest finite number. A norm/s
// below the smallest normal number loses accuracy, and with it the claims above.
#pragma once

#include "compressors/compressor.h"

namespace cohort::compressors {

class Qsgd final : public Compressor {
 public:
  Qsgd(Seed seed, int bits, bool biased)
      : seed_(seed), levels_((1U << bits) - 1), biased_(biased) {}

  std::string_view name() const override { return "qsgd"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  double contraction(std::int64_t numel) const override;
  std::size_t max_encoded_bytes(std::int64_t numel) const override;

 private:
  double variance(std::size_t numel) const;  // w above
  float unit(float norm, std::size_t numel) const;
  unsigned checked_width(std::span<const std::byte> wire, std::size_t numel) const;

  Seed seed_;
  std::uint32_t levels_;
  bool biased_;
};

}  // namespace cohort::compressors
