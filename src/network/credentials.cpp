#include "network/credentials.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "network/secret_file.h"

namespace cohort::network {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kMaxTokenFile = 1024;

}  // namespace

std::string make_token() {
  std::array<unsigned char, kTokenBytes> random;
  while (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    if (errno != EINTR) throw RunError(std::string("no random numbers: ") + std::strerror(errno));
  }
  std::string token;
  for (const unsigned char value : random) {
    token += kHexDigits[value >> 4];
    token += kHexDigits[value & 15];
  }
  return token;
}

bool is_token(std::string_view text) {
  return text.size() == 2 * kTokenBytes && text.find_first_not_of(kHexDigits) == text.npos;
}

std::string read_token(const std::filesystem::path& file) {
  std::string text = read_secret_file(file, kMaxTokenFile);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  if (!is_token(text)) {
    throw ConfigError(file.string() + " holds no token; `cohort token --file " + file.string() +
                      "` writes one where there is no file yet");
  }
  return text;
}

bool wants_tls(const Credentials& credentials, const Address& address) {
  if (address.is_unix()) return credentials.everywhere();
  if (credentials.any()) return true;
  if (is_of_this_host_alone(address)) return false;
  if (credentials.insecure) return false;
  throw ConfigError(
      address.text() +
      " is reached over the network and nothing would keep strangers out: set COHORT_TOKEN or give "
      "--token-file with a token that `cohort token` makes, the same for all processes of the job; "
      "or give --tls-dir; or, on a network that you trust, --insecure");
}

}  // namespace cohort::network
