// What OpenSSL reads from and writes to. Only for files of this layer.
//
// Reads go to the socket, and before the handshake is over no further than `allowance`. What it
// writes is gathered in `out`, for someone else to send: each send costs the system as much as
// encrypting several kilobytes.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <vector>

#include "network/listener.h"

namespace cohort {

struct TlsWire {
  int descriptor = -1;
  std::size_t allowance = kStrangerBytes;  // to be read before the handshake is over
  bool at_handshake = true;
  bool ended = false;
  std::vector<std::byte> out = {};  // encrypted and not sent, from
  std::size_t sent = 0;             // here on
};

// One that refers to `wire`, which outlives it.
BIO* make_bio(TlsWire& wire);

}  // namespace cohort
