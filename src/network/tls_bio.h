// The socket under one connection of OpenSSL's (a BIO). Only for files of this layer.
//
// Reads go to the socket, no further than `allowance`. What OpenSSL writes, a record at a time, is
// gathered in `out`: a call of the system for each would cost more than sealing it. Whoever has the
// connection calls flush(), and lets OpenSSL write only while little is unsent.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/listener.h"
#include "network/stream.h"

namespace cohort::network {

struct TlsSocket {
  int descriptor = -1;
  std::size_t allowance = kStrangerBytes;  // bytes that may still be read
  bool dry = false;                        // the last read took all that the system had
  bool ended = false;                      // the peer has closed
  std::vector<std::byte> out = {};
  std::size_t out_sent = 0;   // bytes of `out`
  std::uint64_t records = 0;  // that OpenSSL wrote
  std::uint64_t& wire_sent;   // what the system took, and gave
  std::uint64_t& wire_received;

  std::size_t unsent() const { return out.size() - out_sent; }
  // kDone: nothing is unsent. kWantWrite, or kFailed with errno.
  IoResult flush();
};

// One that refers to `socket`, which outlives it.
BIO* make_bio(TlsSocket& socket);

}  // namespace cohort::network
