#include "network/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace cohort::network {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ConfigError("'" + std::string(text) + "' is no address: " + why +
                    "; right are 10.0.0.7:2222, host.example:2222, [::1]:2222 and "
                    "unix:/path/to/socket");
}

bool is_v6(const std::string& host) {
  in6_addr number;
  return inet_pton(AF_INET6, host.c_str(), &number) == 1;
}

std::uint16_t parse_port(std::string_view text, std::string_view whole) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port > 65535) {
    refuse(whole, "'" + std::string(text) + "' is no port from 0 to 65535");
  }
  return static_cast<std::uint16_t>(port);
}

void check_host(const std::string& host, std::string_view whole) {
  if (host.empty()) refuse(whole, "the host is missing");
  for (const char letter : host) {
    if (static_cast<unsigned char>(letter) <= ' ' || letter == '/' || letter == '@') {
      refuse(whole, "a host has no '" + std::string(1, letter) + "'");
    }
  }
}

}  // namespace

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string Address::text() const {
  if (is_unix()) return std::string(kUnixPrefix) + path;
  const bool brackets = host.find(':') != host.npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Address parse_address(std::string_view text, std::uint16_t default_port) {
  Address address;
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix) {
    address.path = text.substr(kUnixPrefix.size());
    if (address.path.empty() || address.path[0] != '/') refuse(text, "a path begins with '/'");
    return address;
  }
  std::optional<std::string_view> port;
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == text.npos) refuse(text, "']' is missing");
    address.host = text.substr(1, end - 1);
    if (!is_v6(address.host)) refuse(text, "between brackets stands a number such as ::1");
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') refuse(text, "after ']' comes ':' and the port");
    if (!rest.empty()) port = rest.substr(1);
  } else if (const std::string whole(text); is_v6(whole)) {
    address.host = whole;
  } else {
    const std::size_t colon = text.rfind(':');
    address.host = text.substr(0, colon);
    if (colon != text.npos) port = text.substr(colon + 1);
    if (address.host.find(':') != address.host.npos) refuse(text, "it has too many ':'");
  }
  check_host(address.host, text);
  if (!port && default_port == 0) refuse(text, "the port is missing");
  address.port = port ? parse_port(*port, text) : default_port;
  return address;
}

std::vector<Address> parse_addresses(std::string_view text, std::uint16_t default_port) {
  std::vector<Address> addresses;
  for (const std::string& part : split(text, ',')) {
    addresses.push_back(parse_address(part, default_port));
  }
  return addresses;
}

bool is_of_this_host_alone(const Address& address) {
  if (address.is_unix()) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool alone = found != nullptr;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    alone = alone && is_loopback(*each->ai_addr);
  }
  freeaddrinfo(found);
  return alone;
}

}  // namespace cohort::network
