#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <cstdint>

#include "network/aead.h"

namespace cohort {
namespace {

// Its GCM functions keep all they know in the key and the context, so that one manager, which is
// the table of them, serves all threads.
const IMB_MGR* manager() {
  static const IMB_MGR* const kManager = []() -> const IMB_MGR* {
    IMB_MGR* made = alloc_mb_mgr(0);
    if (made == nullptr) return nullptr;
    IMB_ARCH chosen = IMB_ARCH_NONE;
    init_mb_mgr_auto(made, &chosen);
    constexpr std::uint64_t kWide = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;
    if (chosen == IMB_ARCH_AVX512 && (made->features & kWide) == kWide) return made;
    free_mb_mgr(made);
    return nullptr;
  }();
  return kManager;
}

const unsigned char* bytes_of(std::span<const std::byte> in) {
  return reinterpret_cast<const unsigned char*>(in.data());
}

class WideAead final : public Aead {
 public:
  WideAead(Use use, const Key& key) : sealing_(use == Use::kSeal) {
    IMB_AES128_GCM_PRE(manager(), key.data(), &key_);
  }
  ~WideAead() override {
    OPENSSL_cleanse(&key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
  }
  WideAead(const WideAead&) = delete;
  WideAead& operator=(const WideAead&) = delete;

  void begin(const Nonce& nonce, std::span<const std::byte> header) override {
    IMB_AES128_GCM_INIT(manager(), &key_, &context_, nonce.data(), bytes_of(header), header.size());
  }

  void turn(std::span<const std::byte> in, std::byte* out) override {
    auto* const to = reinterpret_cast<unsigned char*>(out);
    if (sealing_) {
      IMB_AES128_GCM_ENC_UPDATE(manager(), &key_, &context_, to, bytes_of(in), in.size());
    } else {
      IMB_AES128_GCM_DEC_UPDATE(manager(), &key_, &context_, to, bytes_of(in), in.size());
    }
  }

  Tag tag() override {
    Tag tag;
    IMB_AES128_GCM_ENC_FINALIZE(manager(), &key_, &context_, tag.data(), tag.size());
    return tag;
  }

  bool verify(const Tag& given) override {
    Tag found;
    IMB_AES128_GCM_DEC_FINALIZE(manager(), &key_, &context_, found.data(), found.size());
    return CRYPTO_memcmp(found.data(), given.data(), given.size()) == 0;
  }

 private:
  bool sealing_;
  alignas(64) gcm_key_data key_ = {};
  alignas(64) gcm_context_data context_ = {};
};

}  // namespace

std::unique_ptr<Aead> make_wide_aead(Aead::Use use, const Aead::Key& key) {
  if (manager() == nullptr) return nullptr;
  return std::make_unique<WideAead>(use, key);
}

}  // namespace cohort
