// What the two 16-bit formats share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compressors/compressor.h"

namespace cohort::compressors {

// Wire: 2 n bytes, each number converted by itself. A message with a value that is not finite is
// refused.
class Halves : public Compressor {
 public:
  void encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) override;
  std::size_t decode(std::span<const std::byte> wire, const MessageKey& key,
                     std::span<float> dense) const override;
  std::size_t decode_add(std::span<const std::byte> wire, const MessageKey& key, float weight,
                         std::span<float> dense) const override;
  bool sparse() const override { return false; }
  std::size_t max_encoded_bytes(std::int64_t numel) const override {
    return static_cast<std::size_t>(numel) * sizeof(std::uint16_t);
  }

 protected:
  struct Format {
    void (*narrow)(const float* in, std::byte* out, std::size_t numel);
    void (*widen)(const std::byte* in, float* out, std::size_t numel);
    std::uint16_t exponent;  // the bits that are all set in infinities and NaN
  };
  explicit Halves(const Format& format) : format_(format) {}

 private:
  void check(std::span<const std::byte> wire, std::size_t numel) const;

  Format format_;
};

}  // namespace cohort::compressors
