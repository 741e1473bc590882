// The records of TLS 1.3 (RFC 8446, section 5) with AES-128-GCM, once the handshake has agreed on
// the secrets. No sockets. Only for files of this layer.
//
// The handshake is OpenSSL's. Its records would be too, but on their way it copies every byte twice
// at the sender and once at the reader (docs/decisions/0017-records-of-tls-by-ourselves.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "network/aead.h"

namespace cohort {

inline constexpr std::size_t kRecordHeader = 5;
inline constexpr std::size_t kRecordContent = 16 << 10;             // the most that a record holds
inline constexpr std::size_t kRecordAdds = kRecordHeader + 1 + 16;  // header, type, tag
inline constexpr std::size_t kLongestRecord = kRecordContent + kRecordAdds;

enum class RecordType : std::uint8_t { kAlert = 21, kHandshake = 22, kData = 23 };

// What one end sends is sealed with keys of one of these.
struct TrafficSecret {
  std::array<unsigned char, 32> bytes = {};

  TrafficSecret() = default;
  TrafficSecret(const TrafficSecret&) = default;
  TrafficSecret& operator=(const TrafficSecret&) = default;
  ~TrafficSecret();

  // The one that follows it: what it was cannot be found out from that.
  TrafficSecret next() const;
};

// The secret's key, and a nonce for each record.
class RecordKeys {
 public:
  RecordKeys(Aead::Use use, const TrafficSecret& secret);
  ~RecordKeys();
  RecordKeys(RecordKeys&&) = default;
  RecordKeys& operator=(RecordKeys&&) = default;

  // For the next record, whose header is this.
  Aead& begin(std::span<const std::byte> header);
  std::uint64_t records() const { return records_; }
  void renew();  // goes on with the next secret

 private:
  void derive();

  Aead::Use use_;
  TrafficSecret secret_;
  Aead::Nonce iv_ = {};
  std::unique_ptr<Aead> aead_;
  std::uint64_t records_ = 0;  // of this secret
};

// Seals one record of the concatenated `parts`, together at most kRecordContent bytes. `out` has
// room for kRecordAdds more; returns what is used of it.
std::size_t seal_record(RecordKeys& keys, RecordType type,
                        std::span<const std::span<const std::byte>> parts, std::byte* out);

// How long the record is whose header this is, all in all; nothing when it cannot be one.
std::optional<std::size_t> record_length(std::span<const std::byte, kRecordHeader> header);
// What such a record holds, as long as it is not padded.
inline std::size_t content_length(std::size_t record) { return record - kRecordAdds; }

// Opens a whole record into `first`, then `second`, together at least as long as what it holds.
// Nothing: it is not what the peer sealed, or not in its turn, and whatever is in `first` and
// `second` means nothing.
std::optional<RecordType> open_record(RecordKeys& keys, std::span<const std::byte> record,
                                      std::span<std::byte> first, std::span<std::byte> second);

// A key sees so many records of ours; RFC 8446, section 5.5 allows 2^24.5.
inline constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

// The one handshake message that comes later: what the sender seals from now on is sealed with the
// next secret.
enum class KeyUpdate : std::uint8_t { kNotRequested = 0, kRequested = 1 };
std::array<std::byte, 5> key_update_message(KeyUpdate kind);
std::optional<KeyUpdate> parse_key_update(std::span<const std::byte> content);

}  // namespace cohort
