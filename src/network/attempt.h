// One try to reach a listener at one place. Only for files of this layer.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "network/connector.h"
#include "network/early_connection.h"
#include "network/handshake.h"
#include "network/tls.h"

namespace cohort::network {

class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  struct Failed {
    std::string obstacle;
    bool other_way = false;   // with TLS if it was plain, plain if it was TLS, it might go
    bool distrusted = false;  // TLS could not be set up: another token, another authority
  };
  using Result = std::variant<std::unique_ptr<Link>, Refused, Failed>;
  // Called once, unless the attempt is destroyed before.
  using Done = std::function<void(Result)>;

  // `options` and `tls`, which is null for plain, outlive the attempt.
  Attempt(const ConnectorOptions& options, const TlsContext* tls, SocketAddress place, Done done);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void begin(boost::asio::io_context& io);

 private:
  template <class Next>
  EarlyConnection::Done then(Next next);
  bool is_unix() const { return place_.storage.ss_family == AF_UNIX; }
  void connected();
  void introduce();
  void judge_header();
  void judge();
  void establish(const Greeting& welcome);
  void fail(std::string obstacle, bool other_way = false, bool distrusted = false);

  const ConnectorOptions& options_;
  const TlsContext* tls_;
  SocketAddress place_;
  Done done_;
  std::shared_ptr<EarlyConnection> connection_;
  Greeting hello_;
  bool greeted_ = false;
  std::array<std::byte, kFrameHeaderBytes> header_ = {};
  Bytes payload_;
};

}  // namespace cohort::network
