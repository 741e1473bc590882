#include "network/tls_wire.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

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
  if (wire.allowance == 0) return -1;
  const std::size_t most = std::min(static_cast<std::size_t>(size), wire.allowance);
  const ssize_t got = ::recv(wire.descriptor, data, most, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  if (got == 0) wire.ended = true;
  if (got > 0) wire.allowance -= static_cast<std::size_t>(got);
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

// 64 digits.
std::optional<TrafficSecret> parse_secret(std::string_view digits) {
  TrafficSecret secret;
  if (digits.size() != 2 * secret.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < secret.bytes.size(); ++i) {
    const char* const begin = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, secret.bytes[i], 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
  }
  return secret;
}

}  // namespace

// "CLIENT_TRAFFIC_SECRET_0 (a random number) (the secret)"
void keep_secret(const SSL* ssl, const char* line) {
  const std::string_view text = line;
  const auto name = text.substr(0, text.find(' '));
  const auto digits = text.substr(text.rfind(' ') + 1);
  TlsWire& wire = wire_of(SSL_get_rbio(ssl));
  if (name == "CLIENT_TRAFFIC_SECRET_0") wire.of_connecting = parse_secret(digits);
  if (name == "SERVER_TRAFFIC_SECRET_0") wire.of_listening = parse_secret(digits);
}

BIO* make_bio(TlsWire& wire) {
  BIO* bio = BIO_new(wire_method());
  COHORT_CHECK(bio != nullptr, "OpenSSL has no memory");
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace cohort
