// No compression: the float32 values as they are, 4 n bytes. The baseline of every comparison.
#pragma once

#include "compressors/compressor.h"

namespace cohort::compressors {

class None final : public Compressor {
 public:
  std::string_view name() const override { return "none"; }
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  double contraction(std::int64_t) const override { return 1; }
  std::size_t max_encoded_bytes(std::int64_t numel) const override {
    return static_cast<std::size_t>(numel) * sizeof(float);
  }
};

}  // namespace cohort::compressors
