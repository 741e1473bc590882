// OpenSSL's settings for one end of a job's connections, made once and used for all of them.
//
// TLS 1.3 and nothing older, no tickets, no early data. With a token both ends prove that they know
// it (an external pre-shared key derived from the token and the job, with a fresh Diffie-Hellman
// exchange each time); with certificates both show one of the job's own authority, which names job,
// role and rank.
#pragma once

#include <cstdint>
#include <memory>

#include "network/credentials.h"
#include "network/identity.h"
#include "network/stream.h"

namespace cohort::network {

// A key sees so many records; RFC 8446, section 5.5 allows 2^24.5, and OpenSSL does not count.
inline constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

class TlsContext {
 public:
  enum class End { kListens, kConnects };

  // Throws ConfigError when the files of the credentials cannot be used, or are another process's.
  TlsContext(const Credentials& credentials, const Identity& self, End end);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  // Over a connected socket, which it does not own. May outlive this object. It goes on with a new
  // key after so many records.
  std::unique_ptr<Stream> make_stream(int descriptor,
                                      std::uint64_t records_of_a_key = kRecordsOfAKey) const;

  struct State;  // tls_stream.h

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cohort::network
