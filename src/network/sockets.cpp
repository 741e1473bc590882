#include "network/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/error.h"

namespace cohort::network {
namespace {

constexpr int kBacklog = 1024;
// Of the system for one connection. TCP's would grow by themselves, but only after a while.
constexpr int kTcpBuffer = 4 << 20;
constexpr int kUnixBuffer = 1 << 20;
// Within a host nothing gets congested. What some systems use for all, BBR, sends by a timer's
// leave, which costs an eighth of the rate there (docs/performance.md). This one any user may
// choose, on every system.
constexpr std::string_view kCongestionControlHere = "reno";

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Numbers of version 4 first: "localhost" must mean the same to whoever listens and connects.
std::vector<SocketAddress> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    throw ConfigError("cannot listen at " + address.text() + ": the host is not known (" +
                      gai_strerror(error) + ")");
  }
  std::vector<SocketAddress> result;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketAddress entry;
    std::memcpy(&entry.storage, each->ai_addr, each->ai_addrlen);
    entry.size = each->ai_addrlen;
    result.push_back(entry);
  }
  freeaddrinfo(found);
  std::stable_partition(result.begin(), result.end(), [](const SocketAddress& entry) {
    return entry.storage.ss_family == AF_INET;
  });
  return result;
}

std::string why_not_listening(const Address& address, int error) {
  const std::string text = "cannot listen at " + address.text() + ": ";
  if (error == EADDRINUSE) {
    return text + "another process listens there; end it, or choose another port";
  }
  if (error == EADDRNOTAVAIL) {
    return text + "it is none of this host's addresses; give one of them, or 127.0.0.1";
  }
  return text + std::strerror(error);
}

}  // namespace

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  if (storage.ss_family == AF_UNIX) return "a Unix socket";
  if (getnameinfo(get(), size, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return Address{.host = host, .port = port()}.text();
}

std::uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool fits_unix_address(const std::string& path) {
  return path.size() < sizeof(sockaddr_un{}.sun_path) && path.find('\0') == path.npos;
}

SocketAddress unix_address(const std::string& path) {
  if (!fits_unix_address(path)) {
    throw ConfigError("'" + path + "' is too long for a Unix socket: at most " +
                      std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) + " letters");
  }
  SocketAddress address;
  auto& place = reinterpret_cast<sockaddr_un&>(address.storage);
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, path.c_str(), path.size() + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Descriptor listen_at(Address& address) {
  int error = EADDRNOTAVAIL;
  for (const SocketAddress& place : look_up(address)) {
    Descriptor socket = make_socket(place.storage.ss_family);
    const int on = 1;
    // Ports whose last connections are still winding down may be taken again at once.
    if (socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.get(), place.get(), place.size) == 0 &&
        ::listen(socket.get(), kBacklog) == 0) {
      SocketAddress taken;
      taken.size = sizeof taken.storage;
      COHORT_CHECK(::getsockname(socket.get(), taken.get(), &taken.size) == 0,
                   "a socket without a name");
      address.port = taken.port();
      return socket;
    }
    error = errno;
  }
  throw ConfigError(why_not_listening(address, error));
}

bool nobody_listens_at(const std::string& path) {
  const SocketAddress place = unix_address(path);
  const Descriptor probe = make_socket(AF_UNIX);
  return ::connect(probe.get(), place.get(), place.size) != 0 && errno == ECONNREFUSED;
}

Descriptor listen_at_path(const std::string& path) {
  const SocketAddress place = unix_address(path);
  for (bool again = true;; again = false) {
    Descriptor socket = make_socket(AF_UNIX);
    if (socket && ::bind(socket.get(), place.get(), place.size) == 0 &&
        ::listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    const int error = errno;
    if (error == EADDRINUSE && again) {
      if (nobody_listens_at(path)) {
        ::unlink(path.c_str());
        continue;
      }
    }
    throw ConfigError(why_not_listening(Address{.path = path}, error));
  }
}

Descriptor begin_connecting(const SocketAddress& address) {
  Descriptor socket = make_socket(address.storage.ss_family);
  if (!socket) return {};
  if (::connect(socket.get(), address.get(), address.size) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  return socket;
}

int connect_error(int descriptor) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0) return error;
  // A port from which connections also start can be connected to itself when nobody listens there.
  SocketAddress here;
  SocketAddress there;
  here.size = there.size = sizeof here.storage;
  if (::getsockname(descriptor, here.get(), &here.size) != 0) return errno;
  if (::getpeername(descriptor, there.get(), &there.size) != 0) return errno;
  const bool to_itself = here.storage.ss_family != AF_UNIX && here.size == there.size &&
                         std::memcmp(&here.storage, &there.storage, here.size) == 0;
  return to_itself ? ECONNREFUSED : 0;
}

bool nobody_listens_at(const Address& address, std::chrono::milliseconds at_most) {
  std::vector<SocketAddress> places;
  try {
    places = look_up(address);
  } catch (const ConfigError&) {
    return false;
  }
  return !places.empty() && std::all_of(places.begin(), places.end(), [&](const auto& place) {
    const Descriptor socket = begin_connecting(place);
    if (!socket) return errno == ECONNREFUSED;
    pollfd watched{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&watched, 1, static_cast<int>(at_most.count())) != 1) return false;
    return connect_error(socket.get()) == ECONNREFUSED;
  });
}

void tune(int descriptor, std::chrono::milliseconds silence) {
  const SocketAddress peer = peer_address(descriptor);
  const bool is_unix = peer.storage.ss_family == AF_UNIX;
  const int bytes = is_unix ? kUnixBuffer : kTcpBuffer;
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (is_unix) return;
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (is_loopback(*peer.get())) {
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, kCongestionControlHere.data(),
                 static_cast<socklen_t>(kCongestionControlHere.size()));
  }
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto timeout_ms = static_cast<unsigned>(silence.count());
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

bool is_of_same_user(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

SocketAddress peer_address(int descriptor) {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getpeername(descriptor, address.get(), &address.size) != 0) return {};
  return address;
}

bool is_on_this_host(int descriptor) {
  const SocketAddress peer = peer_address(descriptor);
  return peer.get()->sa_family == AF_UNIX || is_loopback(*peer.get());
}

}  // namespace cohort::network
