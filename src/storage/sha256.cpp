#include "storage/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <atomic>
#include <future>

#include "core/error.h"

namespace cohort::storage {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  COHORT_CHECK(state_->context && EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr),
               "OpenSSL has no SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  COHORT_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()),
               "SHA-256 update");
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  COHORT_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size), "SHA-256 finish");
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

std::vector<std::string> sha256_of_each(const std::vector<std::span<const std::byte>>& pieces) {
  std::vector<std::string> hashes(pieces.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) hashes[i] = sha256(pieces[i]);
  };
  // The default policy, because it runs `work` here at get() when no thread can be had.
  std::future<void> second = std::async(work);
  work();
  second.get();
  return hashes;
}

}  // namespace cohort::storage
