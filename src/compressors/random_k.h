// k elements drawn at random without replacement; the others are zero. Sender and receivers draw
// the same ones from the seed and the message's key, so no indices are sent.
//
// Wangni et al. 2018; Stich et al. 2018. Biased, the values are sent as they are and the
// contraction is k/n. Unbiased, they are multiplied by n/k: the expectation is the vector itself,
// but the squared error is n/k - 1 times its squared norm, so that only k > n/2 contracts. A
// product beyond the range of float32 becomes the largest finite number.
//
// Wire: the k = max(1, floor(n (1 - ratio))) values as float32 in the order of their indices, 4 k
// bytes.
#pragma once

#include <vector>

#include "compressors/compressor.h"

namespace cohort::compressors {

class RandomK final : public Compressor {
 public:
  // `ratio` of the elements are dropped, in [0, 1).
  RandomK(Seed seed, double ratio, bool biased) : seed_(seed), ratio_(ratio), biased_(biased) {}

  std::string_view name() const override { return "random-k"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return true; }
  double contraction(std::int64_t numel) const override;
  std::size_t max_encoded_bytes(std::int64_t numel) const override;

  // The elements that the message `key` is about, ascending.
  std::vector<std::uint32_t> indices(std::size_t numel, const MessageKey& key) const;

 private:
  std::size_t checked_bytes(std::span<const std::byte> wire, std::size_t numel) const;

  Seed seed_;
  double ratio_;
  bool biased_;
};

}  // namespace cohort::compressors
