// A stream of TLS, handshake and records by OpenSSL. Only for files of this layer.
//
// What is written is sealed a batch at a time and given to the system in one call; what comes is
// taken from the system a batch at a time, and opened record by record to where the reader wants
// it (docs/decisions/0021-tls-records-by-openssl.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "network/openssl_memory.h"
#include "network/stream.h"
#include "network/tls.h"

namespace cohort::network {

// What connections of one end have in common; the callbacks find it in their connection.
struct TlsContext::State {
  OpenSslContext context;
  Identity self;
  End end = End::kConnects;
  bool by_token = false;
  std::string psk_identity;                // no secret
  std::array<unsigned char, 32> psk = {};  // the secret

  ~State();
};

// Bytes of data that are sealed before the system gets them, and what is asked of it at once, which
// then stays in a core's cache.
inline constexpr std::size_t kTlsBatch = 256 << 10;
inline constexpr std::size_t kTlsReadAhead = 64 << 10;

// `state` is shared: links outlive the listener that they came through.
std::unique_ptr<Stream> make_tls_stream(std::shared_ptr<const TlsContext::State> state,
                                        int descriptor, std::uint64_t records_of_a_key);

}  // namespace cohort::network
