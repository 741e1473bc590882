#include "network/tls_bio.h"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace cohort::network {
namespace {

TlsSocket& socket_of(BIO* bio) { return *static_cast<TlsSocket*>(BIO_get_data(bio)); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int gather(BIO* bio, const char* data, int size) {
  TlsSocket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  socket.out.insert(socket.out.end(), bytes, bytes + size);
  ++socket.records;
  return size;
}

int receive(BIO* bio, char* data, int size) {
  TlsSocket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  errno = 0;
  if (socket.allowance == 0) return -1;
  if (socket.dry) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const std::size_t most = std::min(static_cast<std::size_t>(size), socket.allowance);
  const ssize_t got = ::recv(socket.descriptor, data, most, 0);
  if (got < 0 && would_block()) BIO_set_retry_read(bio);
  if (got == 0) socket.ended = true;
  if (got > 0) {
    socket.dry = static_cast<std::size_t>(got) < most;
    socket.allowance -= static_cast<std::size_t>(got);
    socket.wire_received += static_cast<std::uint64_t>(got);
  }
  return static_cast<int>(got);
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return socket_of(bio).ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cohort socket");
    COHORT_CHECK(method != nullptr && BIO_meth_set_write(method, gather) == 1 &&
                     BIO_meth_set_read(method, receive) == 1 &&
                     BIO_meth_set_ctrl(method, control) == 1,
                 "OpenSSL has no memory");
    return method;
  }();
  return kMethod;
}

}  // namespace

IoResult TlsSocket::flush() {
  while (unsent() > 0) {
    const ssize_t sent = ::send(descriptor, out.data() + out_sent, unsent(), MSG_NOSIGNAL);
    if (sent < 0 && would_block()) return {IoResult::Status::kWantWrite, 0};
    if (sent < 0) return {IoResult::Status::kFailed, 0};
    wire_sent += static_cast<std::uint64_t>(sent);
    out_sent += static_cast<std::size_t>(sent);
  }
  out.clear();
  out_sent = 0;
  return {};
}

BIO* make_bio(TlsSocket& socket) {
  BIO* bio = BIO_new(socket_method());
  COHORT_CHECK(bio != nullptr, "OpenSSL has no memory");
  BIO_set_data(bio, &socket);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace cohort::network
