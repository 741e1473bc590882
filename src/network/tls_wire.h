// What OpenSSL reads from and writes to during the handshake, and the secrets that come of it. Only
// for files of this layer.
//
// Reads go to the socket, no further than `allowance`, and never beyond the handshake's last byte.
// What it writes is gathered in `out`, for someone else to send.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "network/listener.h"
#include "network/tls_records.h"

namespace cohort {

struct TlsWire {
  int descriptor = -1;
  std::size_t allowance = kStrangerBytes;  // to be read before the handshake is over
  bool ended = false;
  std::vector<std::byte> out = {};  // to be sent
  // Of what the end that connected sends, and of what the one that listened does.
  std::optional<TrafficSecret> of_connecting = {};
  std::optional<TrafficSecret> of_listening = {};
};

// One that refers to `wire`, which outlives it.
BIO* make_bio(TlsWire& wire);

// For SSL_CTX_set_keylog_callback(), OpenSSL's only way to tell them: puts them into the wire of
// the connection, and nowhere else.
void keep_secret(const SSL* ssl, const char* line);

}  // namespace cohort
