#include "network/aead.h"

#include "core/error.h"
#include "network/openssl_memory.h"

namespace cohort {
namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, OpenSslRelease<EVP_CIPHER_CTX_free>>;

void check(int result) { COHORT_CHECK(result == 1, "AES-GCM failed: " + take_openssl_error()); }

class OpenSslAead final : public Aead {
 public:
  OpenSslAead(Use use, const Key& key)
      : sealing_(use == Use::kSeal ? 1 : 0), context_(EVP_CIPHER_CTX_new()) {
    COHORT_CHECK(context_ != nullptr, "OpenSSL has no memory");
    check(EVP_CipherInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, key.data(), nullptr,
                            sealing_));
  }

  void begin(const Nonce& nonce, std::span<const std::byte> header) override {
    int moved = 0;
    check(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), sealing_));
    check(EVP_CipherUpdate(context_.get(), nullptr, &moved,
                           reinterpret_cast<const unsigned char*>(header.data()),
                           static_cast<int>(header.size())));
  }

  void turn(std::span<const std::byte> in, std::byte* out) override {
    int moved = 0;
    check(EVP_CipherUpdate(context_.get(), reinterpret_cast<unsigned char*>(out), &moved,
                           reinterpret_cast<const unsigned char*>(in.data()),
                           static_cast<int>(in.size())));
  }

  Tag tag() override {
    Tag tag;
    int moved = 0;
    check(EVP_CipherFinal_ex(context_.get(), tag.data(), &moved));
    check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()),
                              tag.data()));
    return tag;
  }

  bool verify(const Tag& given) override {
    Tag expected = given;
    check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG,
                              static_cast<int>(expected.size()), expected.data()));
    Tag nothing;
    int moved = 0;
    const bool sound = EVP_CipherFinal_ex(context_.get(), nothing.data(), &moved) == 1;
    ERR_clear_error();
    return sound;
  }

 private:
  int sealing_;
  CipherContext context_;
};

}  // namespace

std::unique_ptr<Aead> make_openssl_aead(Aead::Use use, const Aead::Key& key) {
  return std::make_unique<OpenSslAead>(use, key);
}

std::unique_ptr<Aead> make_aead(Aead::Use use, const Aead::Key& key) {
  if (auto wide = make_wide_aead(use, key)) return wide;
  return make_openssl_aead(use, key);
}

}  // namespace cohort
