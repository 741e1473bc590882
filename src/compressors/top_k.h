// The k elements of largest magnitude; the others are zero. Among equal magnitudes the lower index
// is taken.
//
// Aji and Heafield 2017; Stich et al. 2018, "Sparsified SGD with Memory". The elements left out
// hold at most (n - k)/n of the squared norm: the contraction is k/n.
//
// Wire: the k = max(1, floor(n (1 - ratio))) values as float32 in the order of their indices, then
// the indices (gap_code.h). Both sides know k. About 4 k + k (1.5 + log2(n/k)) / 8 bytes; at 1 %
// five bytes an element kept.
#pragma once

#include "compressors/compressor.h"
#include "compressors/selection.h"

namespace cohort::compressors {

class TopK final : public Compressor {
 public:
  // `ratio` of the elements are dropped, in [0, 1).
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::string_view name() const override { return "top-k"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return true; }
  double contraction(std::int64_t numel) const override;
  std::size_t max_encoded_bytes(std::int64_t numel) const override;

 private:
  double ratio_;
  detail::Selection selection_;
};

}  // namespace cohort::compressors
