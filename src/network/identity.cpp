#include "network/identity.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/text.h"

namespace cohort::network {
namespace {}  // namespace

JobId random_job_id() {
  JobId job;
  while (getrandom(job.data(), job.size(), 0) != static_cast<ssize_t>(job.size())) {
    if (errno != EINTR) throw RunError(std::string("no random numbers: ") + std::strerror(errno));
  }
  return job;
}

JobId job_id_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned int size = 0;
  COHORT_CHECK(EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) == 1,
               "SHA-256 failed");
  JobId job;
  std::memcpy(job.data(), hash.data(), job.size());
  return job;
}

std::string to_text(const JobId& job) {
  std::string text;
  for (const std::byte value : job) {
    text += kHexDigits[std::to_integer<unsigned>(value) >> 4];
    text += kHexDigits[std::to_integer<unsigned>(value) & 15];
  }
  return text;
}

JobId parse_job_id(std::string_view text) {
  JobId job;
  bool good = text.size() == 2 * job.size();
  for (std::size_t i = 0; good && i < job.size(); ++i) {
    const std::size_t high = kHexDigits.find(text[2 * i]);
    const std::size_t low = kHexDigits.find(text[2 * i + 1]);
    good = high != kHexDigits.npos && low != kHexDigits.npos;
    job[i] = static_cast<std::byte>(high << 4 | low);
  }
  if (!good) {
    throw ConfigError("'" + std::string(text) +
                      "' is no job; one is 32 digits of 0 to 9 and a to f");
  }
  return job;
}

std::string_view to_text(Role role) { return role == Role::kServer ? "server" : "worker"; }

std::string Identity::text() const {
  return rank == kAnyRank ? "any " + std::string(to_text(role))
                          : std::string(to_text(role)) + " " + std::to_string(rank);
}

}  // namespace cohort::network
