#include "network/tls_wire.h"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace cohort {
namespace {

TlsWire& wire_of(BIO* bio) { return *static_cast<TlsWire*>(BIO_get_data(bio)); }

int write_wire(BIO* bio, const char* data, int size) {
  TlsWire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  wire.out.insert(wire.out.end(), bytes, bytes + size);
  return size;
}

int read_wire(BIO* bio, char* data, int size) {
  TlsWire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  std::size_t most = static_cast<std::size_t>(size);
  if (wire.at_handshake) {
    if (wire.allowance == 0) return -1;
    most = std::min(most, wire.allowance);
  }
  const ssize_t got = ::recv(wire.descriptor, data, most, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  if (got == 0) wire.ended = true;
  if (got > 0 && wire.at_handshake) wire.allowance -= static_cast<std::size_t>(got);
  return static_cast<int>(got);
}

long control_wire(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return wire_of(bio).ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* wire_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cohort wire");
    COHORT_CHECK(method != nullptr && BIO_meth_set_write(method, write_wire) == 1 &&
                     BIO_meth_set_read(method, read_wire) == 1 &&
                     BIO_meth_set_ctrl(method, control_wire) == 1,
                 "OpenSSL has no memory");
    return method;
  }();
  return kMethod;
}

}  // namespace

BIO* make_bio(TlsWire& wire) {
  BIO* bio = BIO_new(wire_method());
  COHORT_CHECK(bio != nullptr, "OpenSSL has no memory");
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace cohort
