// Where a process listens: a TCP port of a host, or a Unix socket of this host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace cohort::network {

struct Address {
  std::string host = {};   // a name or a number; of TCP
  std::uint16_t port = 0;  // of TCP; 0 when listening: any free one
  std::string path = {};   // of a Unix socket; TCP when empty

  bool is_unix() const { return !path.empty(); }
  // "host:port", "[::1]:port" or "unix:/path": what parse_address() takes.
  std::string text() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// "host:port", "[v6]:port", "host" when a default port is given, "unix:/path". Throws ConfigError,
// which shows a right one.
Address parse_address(std::string_view text, std::uint16_t default_port = 0);

// Several, separated by commas.
std::vector<Address> parse_addresses(std::string_view text, std::uint16_t default_port = 0);

// Whether only processes of this host can be at the other end: a Unix socket, or a host all of
// whose numbers are loopback. Looks names up. False when the name is not known.
bool is_of_this_host_alone(const Address& address);

// 127.0.0.0/8, ::1.
bool is_loopback(const sockaddr& address);

}  // namespace cohort::network
