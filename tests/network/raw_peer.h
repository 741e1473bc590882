// The other end of a connection as a stranger would have it: a plain socket, and bytes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "core/error.h"
#include "network/frame.h"
#include "network/handshake.h"
#include "network/little_endian.h"

namespace cohort::network::test {

class RawPeer {
 public:
  explicit RawPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw RunError(std::string("connect: ") + std::strerror(errno));
    }
  }
  RawPeer(RawPeer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer() {
    if (socket_ >= 0) ::close(socket_);
  }

  int socket() const { return socket_; }
  void write(std::span<const std::byte> bytes) {
    static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // All that has come so far.
  const Bytes& received() {
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) {
        closed_ = closed_ || got == 0 || (errno != EAGAIN && errno != EINTR);
        return received_;
      }
      const auto* bytes = reinterpret_cast<const std::byte*>(buffer);
      received_.insert(received_.end(), bytes, bytes + got);
    }
  }
  // Whether the other side has closed.
  bool closed() {
    received();
    return closed_;
  }

 private:
  int socket_;
  Bytes received_;
  bool closed_ = false;
};

// A frame of any content, sealed with right checksums.
inline Bytes frame_bytes(FrameHeader header, std::span<const std::byte> payload = {},
                         std::uint16_t version = kProtocolVersion) {
  header.length = static_cast<std::uint32_t>(payload.size());
  header.checksum = crc32c(payload);
  Bytes frame(kFrameHeaderBytes + payload.size() + padding_after(payload.size()));
  const auto bytes = std::span(frame).first<kFrameHeaderBytes>();
  encode(header, bytes);
  put_number(frame.data() + 4, version);
  put_number(frame.data() + 60, crc32c(bytes.first(60)));
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  return frame;
}

inline Bytes hello_bytes(const Identity& self, const Identity& peer) {
  return encode_greeting(kHello, {.self = self, .peer = peer, .silence = std::chrono::seconds(3)});
}

}  // namespace cohort::network::test
