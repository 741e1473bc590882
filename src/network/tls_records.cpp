#include "network/tls_records.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace cohort {
namespace {

constexpr std::size_t kTag = std::tuple_size_v<Aead::Tag>;
constexpr auto kVersion = std::byte{3};  // TLS 1.2 in all records, whatever the version: 3, 3

// HKDF-Expand-Label(secret, label, "", out.size()) with SHA-256, of at most one block.
void expand(const TrafficSecret& secret, std::string_view label, std::span<unsigned char> out) {
  const std::string name = "tls13 " + std::string(label);
  std::vector<unsigned char> info = {0, static_cast<unsigned char>(out.size()),
                                     static_cast<unsigned char>(name.size())};
  info.insert(info.end(), name.begin(), name.end());
  info.insert(info.end(), {0, 1});  // no context; the first block
  std::array<unsigned char, 32> block;
  unsigned int size = 0;
  COHORT_CHECK(out.size() <= block.size() &&
                   HMAC(EVP_sha256(), secret.bytes.data(), static_cast<int>(secret.bytes.size()),
                        info.data(), info.size(), block.data(), &size) != nullptr &&
                   size == block.size(),
               "HMAC failed");
  std::copy_n(block.begin(), out.size(), out.begin());
  OPENSSL_cleanse(block.data(), block.size());
}

}  // namespace

TrafficSecret::~TrafficSecret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

TrafficSecret TrafficSecret::next() const {
  TrafficSecret next;
  expand(*this, "traffic upd", next.bytes);
  return next;
}

RecordKeys::RecordKeys(Aead::Use use, const TrafficSecret& secret) : use_(use), secret_(secret) {
  derive();
}

RecordKeys::~RecordKeys() { OPENSSL_cleanse(iv_.data(), iv_.size()); }

void RecordKeys::derive() {
  Aead::Key key;
  expand(secret_, "key", key);
  expand(secret_, "iv", iv_);
  aead_ = make_aead(use_, key);
  OPENSSL_cleanse(key.data(), key.size());
  records_ = 0;
}

void RecordKeys::renew() {
  secret_ = secret_.next();
  derive();
}

Aead& RecordKeys::begin(std::span<const std::byte> header) {
  Aead::Nonce nonce = iv_;
  const std::uint64_t number = records_++;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<unsigned char>(number >> (8 * i));
  }
  aead_->begin(nonce, header);
  return *aead_;
}

std::size_t seal_record(RecordKeys& keys, RecordType type,
                        std::span<const std::span<const std::byte>> parts, std::byte* out) {
  std::size_t content = 0;
  for (const auto part : parts) content += part.size();
  COHORT_CHECK(content <= kRecordContent, "a record of at most 16 KiB");
  const std::size_t sealed = content + kRecordAdds - kRecordHeader;
  out[0] = static_cast<std::byte>(RecordType::kData);  // which says nothing of what is inside
  out[1] = out[2] = kVersion;
  out[3] = static_cast<std::byte>(sealed >> 8);
  out[4] = static_cast<std::byte>(sealed);
  Aead& aead = keys.begin({out, kRecordHeader});
  std::byte* to = out + kRecordHeader;
  for (const auto part : parts) {
    if (part.empty()) continue;
    aead.turn(part, to);
    to += part.size();
  }
  const auto last = static_cast<std::byte>(type);
  aead.turn({&last, 1}, to++);
  const Aead::Tag tag = aead.tag();
  std::memcpy(to, tag.data(), tag.size());
  return content + kRecordAdds;
}

std::optional<std::size_t> record_length(std::span<const std::byte, kRecordHeader> header) {
  const std::size_t sealed =
      std::to_integer<std::size_t>(header[3]) << 8 | std::to_integer<std::size_t>(header[4]);
  const std::size_t length = kRecordHeader + sealed;
  const bool sound = header[0] == static_cast<std::byte>(RecordType::kData) &&
                     header[1] == kVersion && header[2] == kVersion && length >= kRecordAdds &&
                     length <= kLongestRecord;
  return sound ? std::optional(length) : std::nullopt;
}

std::optional<RecordType> open_record(RecordKeys& keys, std::span<const std::byte> record,
                                      std::span<std::byte> first, std::span<std::byte> second) {
  auto content = record.subspan(kRecordHeader, content_length(record.size()));
  COHORT_CHECK(content.size() <= first.size() + second.size(), "room for what a record holds");
  Aead& aead = keys.begin(record.first(kRecordHeader));
  for (const std::span<std::byte> place : {first, second}) {
    const auto part = content.first(std::min(content.size(), place.size()));
    if (part.empty()) continue;
    aead.turn(part, place.data());
    content = content.subspan(part.size());
  }
  std::byte type = {};
  aead.turn(record.last(kTag + 1).first(1), &type);
  Aead::Tag tag;
  std::memcpy(tag.data(), record.last(kTag).data(), kTag);
  if (!aead.verify(tag)) return std::nullopt;
  return static_cast<RecordType>(type);
}

std::array<std::byte, 5> key_update_message(KeyUpdate kind) {
  return {std::byte{24}, std::byte{0}, std::byte{0}, std::byte{1}, static_cast<std::byte>(kind)};
}

std::optional<KeyUpdate> parse_key_update(std::span<const std::byte> content) {
  for (const KeyUpdate kind : {KeyUpdate::kNotRequested, KeyUpdate::kRequested}) {
    const auto message = key_update_message(kind);
    if (std::equal(content.begin(), content.end(), message.begin(), message.end())) return kind;
  }
  return std::nullopt;
}

}  // namespace cohort
