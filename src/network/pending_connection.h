// What a listener does with one connection until it is a link or is sent away. Only for files of
// this layer.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "network/early_connection.h"
#include "network/handshake.h"
#include "network/listener.h"
#include "network/tls.h"

namespace cohort::network {

// What all pending connections of a listener have in common.
struct AcceptContext {
  boost::asio::io_context& io;
  const ListenerOptions& options;
  const ListenerEvents& events;
  const TlsContext* tls;  // null: plain
};

class PendingConnection : public std::enable_shared_from_this<PendingConnection> {
 public:
  // Exactly one is called, once, unless the connection is destroyed before.
  struct Outcome {
    std::function<void(PendingConnection&, const Refusal&)> refused;
    std::function<void(PendingConnection&, std::unique_ptr<Link>)> welcomed;
  };

  PendingConnection(const AcceptContext& context, Descriptor socket, std::string from, bool is_unix,
                    Outcome outcome);

  void begin();
  // Whether it has said anything yet. Those that have not are the first to give way.
  bool has_spoken() const { return has_spoken_; }
  const std::string& from() const { return from_; }
  // Tells it, if it may know.
  void send_away(const Refusal& refusal);

 private:
  template <class Next>
  EarlyConnection::Done then(Next next);
  void secure();
  void read_magic();
  void read_header();
  void read_greeting();
  void answer();
  void welcome(const Greeting& hello);
  void refuse(const Refusal& refusal);

  AcceptContext context_;
  std::string from_;
  bool is_unix_;
  Outcome outcome_;
  std::shared_ptr<EarlyConnection> connection_;
  boost::asio::steady_timer timer_;
  std::array<std::byte, kFrameHeaderBytes> header_ = {};
  Bytes payload_ = {};
  bool has_spoken_ = false;
  bool is_secure_ = false;
};

}  // namespace cohort::network
