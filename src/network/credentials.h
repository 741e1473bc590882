// What keeps strangers out: TLS 1.3 with a shared token or with certificates of the job's own
// authority.
//
// Through Unix sockets in a folder of this user alone nothing is encrypted unless `always` is set.
// Ports of loopback, which other users of the host can reach too, are encrypted where there is
// something to do it with. To any other address it is TLS 1.3 or, with `insecure`, plain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "network/address.h"
#include "network/identity.h"

namespace cohort::network {

struct Credentials {
  std::string token = {};  // known to all processes of the job, as `cohort token` makes it
  std::filesystem::path tls_dir = {};  // authority.pem, certificate.pem, key.pem
  bool insecure = false;               // plain, also across the network
  bool always = false;                 // encrypt on this host too

  bool any() const { return !token.empty() || !tls_dir.empty(); }
  bool everywhere() const { return always && any(); }
};

// A new token: 256 random bits as 64 hexadecimal digits.
std::string make_token();

// Whether it is written as make_token() writes one. Anything shorter could be guessed.
bool is_token(std::string_view text);

// The token in a file. Throws ConfigError when others than its owner can read it, or when it holds
// no token.
std::string read_token(const std::filesystem::path& file);

// An authority for one job, and its certificates: `folder`/authority.pem and for each process
// `folder`/<role>-<rank>/{authority,certificate,key}.pem, all readable by the owner alone. The
// authority's key is never written. Throws FileError.
void make_authority(const std::filesystem::path& folder, const JobId& job, int servers, int workers,
                    int valid_days = 30);

// Whether a connection to or at `address` is to be encrypted. Throws ConfigError, with the advice
// what to give, when it would have to be and there is nothing to do it with.
bool wants_tls(const Credentials& credentials, const Address& address);

// OpenSSL's settings for one end, made once and used for every connection.
class TlsContext;  // tls.h

}  // namespace cohort::network
