// Certificates of one job: its authority, which lives in memory only, and those that it issues.
// Each names one process in a URI, `cohort:job/<job>/role/<role>/rank/<rank>`.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "network/identity.h"

namespace cohort::network {

std::string certificate_uri(const Identity& identity);
// Nothing when it is no such URI.
std::optional<Identity> parse_certificate_uri(const std::string& uri);
// Whom a certificate names; nothing when it names none, or several.
std::optional<Identity> identity_in(const X509* certificate);

struct Validity {
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};

struct IssuedCertificate {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// Elliptic curve P-256, signed with SHA-256. Throws RunError when OpenSSL fails.
class Authority {
 public:
  Authority(const JobId& job, const Validity& validity);
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority();

  std::string certificate() const;  // PEM, of the authority itself
  IssuedCertificate issue(const Identity& identity, const Validity& validity) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::network
