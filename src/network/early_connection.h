// A connection before it is a link: the few bytes of the handshake, in steps. Only for files of
// this layer.
//
// One step at a time. Each ends with a call back, perhaps before the call itself returns, unless
// the connection is closed before.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "network/channel.h"
#include "network/sockets.h"

namespace cohort::network {

class EarlyConnection : public std::enable_shared_from_this<EarlyConnection> {
 public:
  using Done = std::function<void(const std::optional<std::string>& problem)>;

  EarlyConnection(boost::asio::io_context& io, Descriptor socket);

  int socket() { return channel_.descriptor.native_handle(); }
  // Before any step but the waits.
  void set_stream(std::unique_ptr<Stream> stream) { channel_.stream = std::move(stream); }
  const Stream& stream() const { return *channel_.stream; }
  // From now on a descriptor that comes with what is read is kept; of plain Unix sockets alone.
  void expect_descriptor() { expects_descriptor_ = true; }
  Descriptor take_descriptor() { return std::move(received_); }

  void wait_until_readable(Done done);
  void wait_until_writable(Done done);
  void handshake(Done done);                              // the stream's own
  void read(std::span<std::byte> into, Done done);        // all of it
  std::size_t bytes_read() const { return bytes_read_; }  // by the last read()
  // At once and whole, or false: there is always room for so little in a new connection.
  bool write(std::span<const std::byte> bytes);

  Channel take();  // afterwards there is nothing left here
  void close();

 private:
  void step(Done done, std::function<IoResult()> attempt);
  void wait(bool for_reading, std::function<void()> then);

  Channel channel_;
  bool closed_ = false;
  bool expects_descriptor_ = false;
  Descriptor received_ = {};
  std::size_t bytes_read_ = 0;
};

}  // namespace cohort::network
