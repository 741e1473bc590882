#include "network/early_connection.h"

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "network/shared_rings.h"

namespace cohort::network {

using Waits = boost::asio::posix::stream_descriptor;

EarlyConnection::EarlyConnection(boost::asio::io_context& io, Descriptor socket)
    : channel_{boost::asio::posix::stream_descriptor(io, socket.get()), nullptr} {
  socket.release();
}

void EarlyConnection::wait(bool for_reading, std::function<void()> then) {
  channel_.descriptor.async_wait(
      for_reading ? Waits::wait_read : Waits::wait_write,
      [self = shared_from_this(), then = std::move(then)](boost::system::error_code) {
        if (!self->closed_) then();
      });
}

void EarlyConnection::wait_until_readable(Done done) {
  wait(true, [done = std::move(done)] { done(std::nullopt); });
}

void EarlyConnection::wait_until_writable(Done done) {
  wait(false, [done = std::move(done)] { done(std::nullopt); });
}

void EarlyConnection::step(Done done, std::function<IoResult()> attempt) {
  const IoResult result = attempt();
  switch (result.status) {
    case IoResult::Status::kWantRead:
    case IoResult::Status::kWantWrite:
      wait(result.status == IoResult::Status::kWantRead,
           [this, done = std::move(done), attempt = std::move(attempt)]() mutable {
             step(std::move(done), std::move(attempt));
           });
      return;
    case IoResult::Status::kDone:
      return done(std::nullopt);
    case IoResult::Status::kEnd:
      return done("it closed the connection");
    case IoResult::Status::kFailed:
      return done(channel_.stream->failure());
  }
}

void EarlyConnection::handshake(Done done) {
  step(std::move(done), [this] { return channel_.stream->handshake(); });
}

void EarlyConnection::read(std::span<std::byte> into, Done done) {
  bytes_read_ = 0;
  step(std::move(done), [this, into] {
    while (bytes_read_ < into.size()) {
      const auto rest = into.subspan(bytes_read_);
      const IoResult result = expects_descriptor_
                                  ? receive_with_descriptor(socket(), rest, received_)
                                  : channel_.stream->read(rest, {});
      if (result.status != IoResult::Status::kDone) return result;
      bytes_read_ += result.bytes;
    }
    return IoResult{};
  });
}

bool EarlyConnection::write(std::span<const std::byte> bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const IoResult result = channel_.stream->write({&piece, 1});
  return result.status == IoResult::Status::kDone && result.bytes == bytes.size() &&
         channel_.stream->unsent() == 0;
}

Channel EarlyConnection::take() {
  closed_ = true;
  return std::move(channel_);
}

void EarlyConnection::close() {
  closed_ = true;
  boost::system::error_code ignored;
  channel_.descriptor.close(ignored);
}

}  // namespace cohort::network
