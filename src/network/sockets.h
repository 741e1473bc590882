// Sockets of the operating system, none of which ever blocks and none of which child processes
// inherit.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "network/address.h"

namespace cohort::network {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close();
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// An address as the system's calls take it.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::string text() const;  // "10.0.0.7:40112", "a Unix socket"
  std::uint16_t port() const;
};

// Throws ConfigError when the path is too long for a Unix socket.
SocketAddress unix_address(const std::string& path);
bool fits_unix_address(const std::string& path);

// A socket that listens. `address`: of TCP, with the port that was taken filled in. Throws
// ConfigError.
Descriptor listen_at(Address& address);

// A socket that listens at `path`, in place of one that a dead process has left. Throws
// ConfigError when a living process listens there.
Descriptor listen_at_path(const std::string& path);

// Where connecting has begun; writable when it has ended, connect_error() says how. Invalid, with
// errno, when it could not begin.
Descriptor begin_connecting(const SocketAddress& address);
// 0, or an errno value.
int connect_error(int descriptor);

// Whether the Unix socket at `path` has been left by a process that is gone.
bool nobody_listens_at(const std::string& path);

// Whether the host of a TCP address says, in that time, that no process listens there.
bool nobody_listens_at(const Address& address, std::chrono::milliseconds at_most);

// For small frames without delay, no pacing within a host, and an end to connections that take
// nothing for `silence`.
void tune(int descriptor, std::chrono::milliseconds silence);

// Whether a process of this user is at the other end of a Unix socket.
bool is_of_same_user(int descriptor);

// Whether the socket's peer is of this host: by a Unix socket, or a loopback address.
bool is_on_this_host(int descriptor);

SocketAddress peer_address(int descriptor);

}  // namespace cohort::network
