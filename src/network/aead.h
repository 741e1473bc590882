// AES-128-GCM of one message after the other, each in as many stretches as it comes in. Only for
// files of this layer.
//
// By the wide instructions of the processor where it has them (Intel's Multi-Buffer library, if
// that was there when this was built), else by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace cohort {

class Aead {
 public:
  using Key = std::array<unsigned char, 16>;
  using Nonce = std::array<unsigned char, 12>;
  using Tag = std::array<unsigned char, 16>;
  enum class Use { kSeal, kOpen };

  virtual ~Aead() = default;

  // A message: begin(), each stretch of it through turn(), then its tag. A key sees no nonce twice.
  // What is opened means nothing before verify() has said so.
  virtual void begin(const Nonce& nonce, std::span<const std::byte> header) = 0;
  // To `out`, which is as long and does not overlap.
  virtual void turn(std::span<const std::byte> in, std::byte* out) = 0;
  virtual Tag tag() = 0;                      // kSeal
  virtual bool verify(const Tag& given) = 0;  // kOpen
};

std::unique_ptr<Aead> make_aead(Aead::Use use, const Aead::Key& key);
std::unique_ptr<Aead> make_openssl_aead(Aead::Use use, const Aead::Key& key);
// Null where the library or the instructions are missing.
std::unique_ptr<Aead> make_wide_aead(Aead::Use use, const Aead::Key& key);

}  // namespace cohort
