#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "network/stream.h"

namespace cohort::network {
namespace {

constexpr std::size_t kMaxPlainRead = 512 << 10;

class PlainStream final : public Stream {
 public:
  PlainStream(int descriptor, bool protects) : Stream(protects), descriptor_(descriptor) {}

  IoResult handshake() override { return {}; }

  IoResult read(std::span<std::byte> first, std::span<std::byte> second) override {
    iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
    msghdr message{};
    message.msg_iov = first.empty() ? pieces + 1 : pieces;
    message.msg_iovlen = first.empty() || second.empty() ? 1 : 2;
    // A plain call even on Unix sockets: descriptors that a peer sends along are dropped.
    const IoResult result =
        outcome(::recvmsg(descriptor_, &message, 0), IoResult::Status::kWantRead);
    wire_received_ += result.bytes;
    return result;
  }

  // Waking up for every segment, and taking the socket's lock from the sender, costs it half its
  // rate.
  void expect(std::size_t bytes) override {
    const int wanted = static_cast<int>(std::min(bytes, kMaxPlainRead));
    if (wanted == expected_) return;
    expected_ = wanted;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);
  }

  IoResult write(std::span<const iovec> pieces) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const IoResult result =
        outcome(::sendmsg(descriptor_, &message, MSG_NOSIGNAL), IoResult::Status::kWantWrite);
    wire_sent_ += result.bytes;
    return result;
  }

  std::size_t unsent() const override { return 0; }
  std::string failure() const override { return std::strerror(error_); }

 private:
  IoResult outcome(ssize_t moved, IoResult::Status blocked) {
    if (moved > 0) return {IoResult::Status::kDone, static_cast<std::size_t>(moved)};
    if (moved == 0) return {IoResult::Status::kEnd, 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {blocked, 0};
    error_ = errno;
    return {IoResult::Status::kFailed, 0};
  }

  int descriptor_;
  int expected_ = 1;
  int error_ = 0;
};

}  // namespace

std::unique_ptr<Stream> make_plain_stream(int descriptor, bool protects) {
  return std::make_unique<PlainStream>(descriptor, protects);
}

}  // namespace cohort::network
