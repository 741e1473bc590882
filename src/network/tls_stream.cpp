#include "network/tls_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "network/certificates.h"
#include "network/record_buffer.h"
#include "network/tls_records.h"
#include "network/tls_wire.h"

namespace cohort {
namespace {

constexpr std::size_t kMaxTlsRead = 512 << 10;
constexpr std::size_t kPartsOfARecord = 8;
// As many in a row that hold no data: more would only keep this end busy.
constexpr int kMaxEmptyRecords = 32;
// A record of this length or less may be something else than data, and is looked at first.
constexpr std::size_t kShort = 64;

// Where a reader wants its bytes.
struct Room {
  std::span<std::byte> first;
  std::span<std::byte> second;
  std::size_t filled = 0;

  std::size_t left() const { return first.size() + second.size(); }
  void advance(std::size_t bytes) {
    filled += bytes;
    const std::size_t now = std::min(bytes, first.size());
    first = first.subspan(now);
    second = second.subspan(bytes - now);
  }
  std::size_t take(std::span<const std::byte> bytes) {
    const std::size_t before = filled;
    for (auto* place : {&first, &second}) {
      const auto now = bytes.first(std::min(bytes.size(), place->size()));
      if (now.empty()) continue;
      std::memcpy(place->data(), now.data(), now.size());
      *place = place->subspan(now.size());
      bytes = bytes.subspan(now.size());
      filled += now.size();
    }
    return filled - before;
  }
};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

class TlsStream final : public Stream {
 public:
  TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor);

  IoResult handshake() override;
  IoResult read(std::span<std::byte> first, std::span<std::byte> second) override;
  void expect(std::size_t bytes) override;
  IoResult write(std::span<const iovec> pieces) override;
  std::size_t unsent() const override { return wire_.out.size() + out_.size(); }
  std::string failure() const override { return failure_; }

 private:
  IoResult outcome(int result);
  std::string why_failed();
  std::string check_peer();
  IoResult flush_handshake();
  void begin_records();

  IoResult fail(const std::string& why);
  IoResult end();
  bool receive(bool& dry);
  void open_next(std::size_t record, Room& room);
  void take_message(RecordType type, std::span<const std::byte> content);
  IoResult flush();
  void seal(RecordType type, std::span<const std::span<const std::byte>> parts);
  void update_key(KeyUpdate kind);
  std::size_t seal_some(std::span<const iovec> pieces);

  std::shared_ptr<const TlsContext::State> state_;
  TlsWire wire_;
  OpenSslConnection ssl_;  // until the handshake is over
  std::optional<RecordKeys> sealing_;
  std::optional<RecordKeys> opening_;
  RecordBuffer out_;
  RecordBuffer in_;
  std::vector<std::byte> opened_;         // of a record that did not fit, or was looked at
  std::span<const std::byte> left_ = {};  // of that
  int empty_records_ = 0;                 // in a row
  int expected_ = 1;
  std::optional<IoResult> last_;  // an end or a failure, once there was one
  std::string failure_;
};

TlsStream::TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor)
    : Stream(/*protects=*/true), state_(std::move(state)), ssl_(SSL_new(state_->context.get())) {
  wire_.descriptor = descriptor;
  COHORT_CHECK(ssl_ != nullptr, "OpenSSL has no memory");
  BIO* bio = make_bio(wire_);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), const_cast<TlsContext::State*>(state_.get()));
  if (state_->end == TlsContext::End::kListens) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

std::string TlsStream::why_failed() {
  if (wire_.allowance == 0) return "it says too much before TLS is set up";
  const unsigned long code = ERR_peek_error();
  distrusted_ = code != 0;
  const long verdict = SSL_get_verify_result(ssl_.get());
  if (state_->by_token && ERR_GET_REASON(code) == SSL_R_BINDER_DOES_NOT_VERIFY) {
    ERR_clear_error();
    return "it has another token";
  }
  if (!state_->by_token && verdict != X509_V_OK) {
    ERR_clear_error();
    return std::string("its certificate is not accepted: ") +
           X509_verify_cert_error_string(verdict);
  }
  if (code == 0) return errno != 0 ? std::strerror(errno) : "the connection broke";
  return "TLS: " + take_openssl_error();
}

IoResult TlsStream::outcome(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {IoResult::Status::kWantRead, 0};
    case SSL_ERROR_WANT_WRITE:
      return {IoResult::Status::kWantWrite, 0};
    case SSL_ERROR_ZERO_RETURN:
      return end();
    default:
      return fail(why_failed());
  }
}

std::string TlsStream::check_peer() {
  if (state_->by_token) {
    return SSL_session_reused(ssl_.get()) == 1 ? "" : "TLS was set up without the token";
  }
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return "it has shown no certificate";
  certified_ = identity_in(certificate);
  if (!certified_) return "its certificate names no process of a job";
  if (certified_->job != state_->self.job) return "its certificate is of another job";
  return "";
}

IoResult TlsStream::fail(const std::string& why) {
  failure_ = why;
  last_ = IoResult{IoResult::Status::kFailed, 0};
  return *last_;
}

IoResult TlsStream::end() {
  failure_ = "it closed the connection";
  last_ = IoResult{IoResult::Status::kEnd, 0};
  return *last_;
}

IoResult TlsStream::flush_handshake() {
  while (!wire_.out.empty()) {
    const ssize_t sent = ::send(wire_.descriptor, wire_.out.data(), wire_.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && would_block()) return {IoResult::Status::kWantWrite, 0};
    if (sent < 0) return fail(std::strerror(errno));
    wire_sent_ += static_cast<std::uint64_t>(sent);
    wire_.out.erase(wire_.out.begin(), wire_.out.begin() + sent);
  }
  return {};
}

IoResult TlsStream::handshake() {
  if (last_) return *last_;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  const IoResult step = result == 1 ? IoResult{} : outcome(result);
  // Also after a failure: the peer may hear from TLS itself, though nothing from us.
  const std::string why = failure_;
  const IoResult flushed = flush_handshake();
  if (step.status != IoResult::Status::kDone && step.status != IoResult::Status::kWantRead) {
    failure_ = why;
    return step;
  }
  if (flushed.status != IoResult::Status::kDone) return flushed;
  if (step.status == IoResult::Status::kWantRead) return step;
  failure_ = check_peer();
  if (failure_.empty()) {
    begin_records();
    return {};
  }
  distrusted_ = true;
  last_ = IoResult{IoResult::Status::kFailed, 0};
  return *last_;
}

void TlsStream::begin_records() {
  COHORT_CHECK(wire_.of_connecting && wire_.of_listening, "OpenSSL did not tell the secrets");
  const bool connects = state_->end == TlsContext::End::kConnects;
  sealing_.emplace(Aead::Use::kSeal, connects ? *wire_.of_connecting : *wire_.of_listening);
  opening_.emplace(Aead::Use::kOpen, connects ? *wire_.of_listening : *wire_.of_connecting);
  wire_received_ += kStrangerBytes - wire_.allowance;
  wire_.of_connecting.reset();
  wire_.of_listening.reset();
  ssl_.reset();
  opened_.resize(kRecordContent);
}

// Waking up for every segment costs the sender half its rate. No record is shorter than what it
// holds.
void TlsStream::expect(std::size_t bytes) {
  const std::size_t wanted = std::min(bytes, kMaxTlsRead);
  const int missing = wanted > in_.size() ? static_cast<int>(wanted - in_.size()) : 1;
  if (missing == expected_) return;
  expected_ = missing;
  ::setsockopt(wire_.descriptor, SOL_SOCKET, SO_RCVLOWAT, &missing, sizeof missing);
}

// Whether more bytes are there; `dry`: all that the system had.
bool TlsStream::receive(bool& dry) {
  const auto room = in_.room();
  const ssize_t got = ::recv(wire_.descriptor, room.data(), room.size(), 0);
  if (got < 0 && would_block()) return false;
  if (got == 0) {
    end();
    return false;
  }
  if (got < 0) {
    fail(std::strerror(errno));
    return false;
  }
  wire_received_ += static_cast<std::uint64_t>(got);
  in_.put(static_cast<std::size_t>(got));
  dry = static_cast<std::size_t>(got) < room.size();
  return true;
}

void TlsStream::take_message(RecordType type, std::span<const std::byte> content) {
  if (type == RecordType::kAlert && content.size() == 2) {
    const int alert = std::to_integer<int>(content[1]);
    if (alert != SSL3_AD_CLOSE_NOTIFY) {
      distrusted_ = true;
      fail(std::string("TLS: the other end says ") + SSL_alert_desc_string_long(alert));
      return;
    }
    end();
    return;
  }
  const auto update =
      type == RecordType::kHandshake ? parse_key_update(content) : std::optional<KeyUpdate>();
  if (!update) {
    fail("TLS: a record that has no place here");
    return;
  }
  opening_->renew();
  if (*update == KeyUpdate::kRequested) update_key(KeyUpdate::kNotRequested);
}

void TlsStream::open_next(std::size_t length, Room& room) {
  const auto record = in_.bytes().first(length);
  in_.take(length);
  const std::size_t content = content_length(length);
  const bool straight = content > kShort && content <= room.left();
  const auto place = straight ? room.first : std::span(opened_);
  const auto type = open_record(*opening_, record, place, straight ? room.second : place.first(0));
  if (!type) {
    distrusted_ = true;
    fail("TLS: a record that was changed on the way");
  } else if (*type != RecordType::kData) {
    take_message(*type, straight ? std::span<const std::byte>() : place.first(content));
  } else if (straight) {
    room.advance(content);
  } else {
    left_ = place.first(content);
  }
  empty_records_ = type == RecordType::kData && content > 0 ? 0 : empty_records_ + 1;
  if (!last_ && empty_records_ > kMaxEmptyRecords) fail("TLS: records that hold nothing");
}

IoResult TlsStream::read(std::span<std::byte> first, std::span<std::byte> second) {
  Room room{first, second};
  bool dry = false;
  while (room.left() > 0) {
    if (!left_.empty()) {
      left_ = left_.subspan(room.take(left_));
      continue;
    }
    if (last_) break;
    std::optional<std::size_t> length = kRecordHeader;
    if (in_.size() >= kRecordHeader) length = record_length(in_.bytes().first<kRecordHeader>());
    if (!length) {
      fail("TLS: what comes is no record");
    } else if (in_.size() >= std::max(*length, kRecordAdds)) {
      open_next(*length, room);
    } else if (dry || !receive(dry)) {
      break;
    }
  }
  in_.rest();
  if (room.filled > 0) return {IoResult::Status::kDone, room.filled};
  return last_.value_or(IoResult{IoResult::Status::kWantRead, 0});
}

IoResult TlsStream::flush() {
  while (out_.size() > 0) {
    const ssize_t sent = ::send(wire_.descriptor, out_.bytes().data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && would_block()) {
      out_.rest();
      return {IoResult::Status::kWantWrite, 0};
    }
    if (sent < 0) return fail(std::strerror(errno));
    wire_sent_ += static_cast<std::uint64_t>(sent);
    out_.take(static_cast<std::size_t>(sent));
  }
  out_.rest();
  return {};
}

void TlsStream::seal(RecordType type, std::span<const std::span<const std::byte>> parts) {
  out_.put(seal_record(*sealing_, type, parts, out_.room().data()));
}

void TlsStream::update_key(KeyUpdate kind) {
  if (out_.room().size() < kLongestRecord) {
    // The peer asks again and again and takes nothing.
    fail("TLS: too many new keys are asked for");
    return;
  }
  const auto message = key_update_message(kind);
  const std::span<const std::byte> content = message;
  seal(RecordType::kHandshake, {&content, 1});
  sealing_->renew();
}

// As much as there is room for. Short pieces are put together; a long one begins a record of its
// own, so that at the other end all but a little of it goes straight to its place. How many bytes
// were taken.
std::size_t TlsStream::seal_some(std::span<const iovec> pieces) {
  std::array<std::span<const std::byte>, kPartsOfARecord> parts;
  std::size_t count = 0;
  std::size_t length = 0;
  std::size_t taken = 0;
  const auto close_record = [&] {
    if (count == 0) return;
    if (sealing_->records() >= kRecordsOfAKey) update_key(KeyUpdate::kNotRequested);
    seal(RecordType::kData, std::span(parts).first(count));
    taken += length;
    count = length = 0;
  };
  for (const iovec& piece : pieces) {
    auto rest = std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    if (rest.size() >= kRecordContent) close_record();
    while (!rest.empty()) {
      // One more for a new key.
      if (count == 0 && out_.room().size() < 2 * kLongestRecord) return taken;
      parts[count] = rest.first(std::min(rest.size(), kRecordContent - length));
      rest = rest.subspan(parts[count].size());
      length += parts[count].size();
      ++count;
      if (length == kRecordContent || count == parts.size()) close_record();
    }
  }
  close_record();
  return taken;
}

IoResult TlsStream::write(std::span<const iovec> pieces) {
  if (last_) return *last_;
  const IoResult earlier = flush();
  if (earlier.status != IoResult::Status::kDone) return earlier;
  const std::size_t taken = seal_some(pieces);
  if (last_) return *last_;
  const IoResult flushed = flush();
  if (flushed.status == IoResult::Status::kFailed) return flushed;
  return {IoResult::Status::kDone, taken};
}

}  // namespace

std::unique_ptr<Stream> make_tls_stream(std::shared_ptr<const TlsContext::State> state,
                                        int descriptor) {
  return std::make_unique<TlsStream>(std::move(state), descriptor);
}

}  // namespace cohort
