// A stream of TLS: OpenSSL's handshake, then records of our own (tls_records.h). Only for files of
// this layer.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "network/openssl_memory.h"
#include "network/stream.h"
#include "network/tls.h"

namespace cohort {

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

// `state` is shared: links outlive the listener that they came through.
std::unique_ptr<Stream> make_tls_stream(std::shared_ptr<const TlsContext::State> state,
                                        int descriptor);

}  // namespace cohort
