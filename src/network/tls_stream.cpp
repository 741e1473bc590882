#include "network/tls_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "network/certificates.h"
#include "network/tls_bio.h"

namespace cohort::network {
namespace {

constexpr std::size_t kMaxAwaited = 512 << 10;
constexpr std::size_t kRecordContent = SSL3_RT_MAX_PLAIN_LENGTH;
// A record adds its header, its type and the seal.
constexpr std::size_t kLongestRecord = kRecordContent + SSL3_RT_HEADER_LENGTH + 1 + 16;

class TlsStream final : public Stream {
 public:
  TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor,
            std::uint64_t records_of_a_key);

  IoResult handshake() override;
  IoResult read(std::span<std::byte> first, std::span<std::byte> second) override;
  void expect(std::size_t bytes) override;
  IoResult write(std::span<const iovec> pieces) override;
  std::size_t unsent() const override { return socket_.unsent(); }
  std::string failure() const override { return failure_; }

 private:
  IoResult outcome(int result);
  std::string why_failed();
  std::string check_peer();
  IoResult fail(const std::string& why);
  IoResult end();
  IoResult flush();
  std::size_t read_into(std::span<std::byte> place);
  bool seal(std::span<const std::byte> bytes);

  std::shared_ptr<const TlsContext::State> state_;
  TlsSocket socket_;
  OpenSslConnection ssl_;
  const std::uint64_t records_of_a_key_;
  int expected_ = 1;
  std::optional<IoResult> last_;  // an end or a failure, once there was one
  std::string failure_;
};

TlsStream::TlsStream(std::shared_ptr<const TlsContext::State> state, int descriptor,
                     std::uint64_t records_of_a_key)
    : Stream(/*protects=*/true),
      state_(std::move(state)),
      socket_{.descriptor = descriptor, .wire_sent = wire_sent_, .wire_received = wire_received_},
      ssl_(SSL_new(state_->context.get())),
      records_of_a_key_(records_of_a_key) {
  COHORT_CHECK(ssl_ != nullptr, "OpenSSL has no memory");
  BIO* bio = make_bio(socket_);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), const_cast<TlsContext::State*>(state_.get()));
  if (state_->end == TlsContext::End::kListens) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

std::string TlsStream::why_failed() {
  if (socket_.allowance == 0) return "it says too much before TLS is set up";
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
  static_cast<void>(socket_.flush());  // the peer may hear from TLS itself, though nothing from us
  return *last_;
}

IoResult TlsStream::end() {
  failure_ = "it closed the connection";
  last_ = IoResult{IoResult::Status::kEnd, 0};
  return *last_;
}

IoResult TlsStream::flush() {
  const IoResult flushed = socket_.flush();
  return flushed.status == IoResult::Status::kFailed ? fail(std::strerror(errno)) : flushed;
}

IoResult TlsStream::handshake() {
  if (last_) return *last_;
  socket_.dry = false;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const IoResult step = result == 1 ? IoResult{} : outcome(result);
  if (last_) return *last_;
  const IoResult flushed = flush();
  if (flushed.status != IoResult::Status::kDone) return flushed;
  if (step.status != IoResult::Status::kDone) return step;
  if (const std::string objection = check_peer(); !objection.empty()) {
    distrusted_ = true;
    return fail(objection);
  }
  socket_.allowance = std::numeric_limits<std::size_t>::max();
  return {};
}

// Waking up for every segment costs the sender half its rate. Of what comes OpenSSL holds less than
// a record.
void TlsStream::expect(std::size_t bytes) {
  const std::size_t wanted = std::min(bytes, kMaxAwaited);
  const int missing = wanted > kLongestRecord ? static_cast<int>(wanted - kLongestRecord) : 1;
  if (missing == expected_) return;
  expected_ = missing;
  ::setsockopt(socket_.descriptor, SOL_SOCKET, SO_RCVLOWAT, &missing, sizeof missing);
}

// As much as there is; less only when there is no more for now, or ever.
std::size_t TlsStream::read_into(std::span<std::byte> place) {
  std::size_t filled = 0;
  while (filled < place.size() && !last_) {
    const auto rest = place.subspan(filled);
    std::size_t now = 0;
    const int result = SSL_read_ex(ssl_.get(), rest.data(), rest.size(), &now);
    filled += now;
    if (result != 1 && outcome(result).status == IoResult::Status::kWantRead) break;
  }
  return filled;
}

IoResult TlsStream::read(std::span<std::byte> first, std::span<std::byte> second) {
  socket_.dry = false;
  ERR_clear_error();
  std::size_t filled = read_into(first);
  if (filled == first.size()) filled += read_into(second);
  if (filled > 0) return {IoResult::Status::kDone, filled};
  return last_.value_or(IoResult{IoResult::Status::kWantRead, 0});
}

// Never more than TlsSocket gathers, so OpenSSL takes all or fails.
bool TlsStream::seal(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  if (socket_.records >= records_of_a_key_) {
    socket_.records = 0;
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  std::size_t sealed = 0;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sealed);
  if (result != 1) outcome(result);
  return result == 1;
}

// Short pieces share a record; a long one begins one of its own and is sealed where it lies.
IoResult TlsStream::write(std::span<const iovec> pieces) {
  if (last_) return *last_;
  const IoResult earlier = flush();
  if (earlier.status != IoResult::Status::kDone) return earlier;
  ERR_clear_error();
  std::array<std::byte, kRecordContent> record;
  std::size_t gathered = 0;
  std::size_t taken = 0;
  const auto seal_gathered = [&] {
    return seal(std::span(record).first(std::exchange(gathered, 0)));
  };
  for (const iovec& piece : pieces) {
    if (taken >= kTlsBatch) break;
    const auto bytes = std::span(static_cast<const std::byte*>(piece.iov_base),
                                 std::min(piece.iov_len, kTlsBatch));
    if (gathered + bytes.size() > record.size() && !seal_gathered()) return *last_;
    if (bytes.size() < record.size()) {
      std::copy(bytes.begin(), bytes.end(), record.begin() + gathered);
      gathered += bytes.size();
    } else if (!seal(bytes)) {
      return *last_;
    }
    taken += bytes.size();
    if (bytes.size() < piece.iov_len) break;
  }
  if (!seal_gathered()) return *last_;
  if (flush().status == IoResult::Status::kFailed) return *last_;
  return {IoResult::Status::kDone, taken};
}

}  // namespace

std::unique_ptr<Stream> make_tls_stream(std::shared_ptr<const TlsContext::State> state,
                                        int descriptor, std::uint64_t records_of_a_key) {
  return std::make_unique<TlsStream>(std::move(state), descriptor, records_of_a_key);
}

}  // namespace cohort::network
