#include "network/tls_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "network/certificates.h"
#include "network/tls_wire.h"

namespace cohort {
namespace {

constexpr std::size_t kRecord = 16 << 10;      // the most that TLS encrypts at once
constexpr std::size_t kGathered = 256 << 10;   // encrypted before it is sent
constexpr std::size_t kReadAhead = 272 << 10;  // as many records, with what TLS adds to them

class TlsStream final : public Stream {
 public:
  TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor);

  IoResult handshake() override;
  IoResult read(std::span<std::byte> first, std::span<std::byte> second) override;
  void expect(std::size_t) override {}  // who knows how much of it is here, still encrypted
  IoResult write(std::span<const iovec> pieces) override;
  std::size_t unsent() const override { return wire_.out.size() - wire_.sent; }
  std::string failure() const override { return failure_; }
  bool distrusted() const override { return distrusted_; }
  bool protects() const override { return true; }
  std::optional<Identity> certified() const override { return certified_; }

 private:
  IoResult outcome(int result);
  IoResult read_into(std::span<std::byte> place);
  std::string why_failed();
  std::string check_peer();
  IoResult flush();
  void enlarge();
  bool encrypt(std::span<const std::byte> bytes);
  std::size_t encrypt_some(std::span<const iovec> pieces);

  std::shared_ptr<const TlsContext::State> state_;
  TlsWire wire_;
  OpenSslConnection ssl_;
  bool enlarged_ = false;
  std::optional<Identity> certified_;
  std::optional<IoResult> last_;  // an end or a failure, once there was one
  std::string failure_;
  bool distrusted_ = false;
};

TlsStream::TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor)
    : state_(std::move(state)), ssl_(SSL_new(state_->context.get())) {
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
  if (wire_.at_handshake && wire_.allowance == 0) return "it says too much before TLS is set up";
  const unsigned long code = ERR_peek_error();
  distrusted_ = code != 0;
  const long verdict = SSL_get_verify_result(ssl_.get());
  if (state_->by_token && ERR_GET_REASON(code) == SSL_R_BINDER_DOES_NOT_VERIFY) {
    ERR_clear_error();
    return "it has another token";
  }
  if (wire_.at_handshake && !state_->by_token && verdict != X509_V_OK) {
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
      last_ = IoResult{IoResult::Status::kEnd, 0};
      failure_ = "it closed the connection";
      return *last_;
    default:
      failure_ = why_failed();
      last_ = IoResult{IoResult::Status::kFailed, 0};
      return *last_;
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

IoResult TlsStream::flush() {
  while (unsent() > 0) {
    const ssize_t sent = ::send(wire_.descriptor, wire_.out.data() + wire_.sent,
                                wire_.out.size() - wire_.sent, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      return {IoResult::Status::kWantWrite, 0};
    }
    if (sent < 0) {
      failure_ = std::strerror(errno);
      last_ = IoResult{IoResult::Status::kFailed, 0};
      return *last_;
    }
    wire_.sent += static_cast<std::size_t>(sent);
  }
  wire_.out.clear();
  wire_.sent = 0;
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
  const IoResult flushed = flush();
  if (step.status != IoResult::Status::kDone && step.status != IoResult::Status::kWantRead) {
    failure_ = why;
    return step;
  }
  if (flushed.status != IoResult::Status::kDone) return flushed;
  if (step.status == IoResult::Status::kWantRead) return step;
  wire_.at_handshake = false;
  failure_ = check_peer();
  if (failure_.empty()) return {};
  distrusted_ = true;
  last_ = IoResult{IoResult::Status::kFailed, 0};
  return *last_;
}

// Strangers must not cost as much memory as this; and it can only be changed while it is empty.
void TlsStream::enlarge() {
  if (SSL_free_buffers(ssl_.get()) != 1) return;
  SSL_set_default_read_buffer_len(ssl_.get(), kReadAhead);
  enlarged_ = true;
}

IoResult TlsStream::read_into(std::span<std::byte> place) {
  std::size_t done = 0;
  while (done < place.size()) {
    if (last_) return done > 0 ? IoResult{IoResult::Status::kDone, done} : *last_;
    ERR_clear_error();
    errno = 0;
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), place.data() + done, place.size() - done, &got);
    if (result != 1) {
      const IoResult stop = outcome(result);
      return done > 0 ? IoResult{IoResult::Status::kDone, done} : stop;
    }
    done += got;
  }
  return {IoResult::Status::kDone, done};
}

IoResult TlsStream::read(std::span<std::byte> first, std::span<std::byte> second) {
  if (!enlarged_) enlarge();
  const IoResult result = first.empty() ? IoResult{} : read_into(first);
  if (result.status != IoResult::Status::kDone || result.bytes < first.size()) return result;
  if (second.empty()) return result;
  const IoResult more = read_into(second);
  if (more.status == IoResult::Status::kDone) {
    return {IoResult::Status::kDone, result.bytes + more.bytes};
  }
  return first.empty() ? more : result;
}

bool TlsStream::encrypt(std::span<const std::byte> bytes) {
  ERR_clear_error();
  errno = 0;
  std::size_t taken = 0;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &taken);
  if (result == 1) return true;
  outcome(result);
  if (!last_) {
    failure_ = "TLS cannot send now";
    last_ = IoResult{IoResult::Status::kFailed, 0};
  }
  return false;
}

// Whole records as they are; what is shorter is put together first. How many bytes were encrypted.
std::size_t TlsStream::encrypt_some(std::span<const iovec> pieces) {
  std::array<std::byte, kRecord> record;
  std::size_t staged = 0;
  std::size_t taken = 0;
  for (const iovec& piece : pieces) {
    auto rest = std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    while (!rest.empty()) {
      if (staged == 0 && wire_.out.size() >= kGathered) return taken;
      const auto now = rest.first(std::min(rest.size(), kRecord - staged));
      rest = rest.subspan(now.size());
      taken += now.size();
      if (now.size() == kRecord) {
        if (!encrypt(now)) return 0;
        continue;
      }
      std::memcpy(record.data() + staged, now.data(), now.size());
      staged += now.size();
      if (staged < kRecord) continue;
      staged = 0;
      if (!encrypt(record)) return 0;
    }
  }
  if (staged > 0 && !encrypt(std::span(record).first(staged))) return 0;
  return taken;
}

IoResult TlsStream::write(std::span<const iovec> pieces) {
  if (last_) return *last_;
  const IoResult earlier = flush();
  if (earlier.status != IoResult::Status::kDone) return earlier;
  const std::size_t taken = encrypt_some(pieces);
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
