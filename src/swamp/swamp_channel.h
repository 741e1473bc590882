// The best-model server as the client's thread sees it: the state machine and the connection
// beneath it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "network/connector.h"
#include "network/reconnect_pause.h"
#include "swamp/best_model_client.h"
#include "swamp/lent_models.h"
#include "swamp/swamp_client.h"

namespace cohort {

class SwampChannel final : private SwampClientPorts, private LinkHandler {
 public:
  // `options` outlive the channel. `changed` is called on the io_context's thread after everything
  // that may matter to somebody who waits. So must all methods be, unless they say otherwise.
  SwampChannel(boost::asio::io_context& io, const SwampClientOptions& options,
               std::function<void()> changed);
  ~SwampChannel() override;

  BestModelClient& client() { return client_; }
  void connect(Deadline deadline);  // the first time; later by itself
  bool connecting() const { return connector_ != nullptr || link_ != nullptr; }

  // Why there is no use in going on; null as long as there is.
  std::exception_ptr failure() const { return failure_; }
  std::string text() const;  // "the best-model server at host:port (what is waited for)"

 private:
  // SwampClientPorts
  void send(const FrameHeader& header, std::span<const std::byte> payload,
            const ModelValues& owner) override;
  // LinkHandler
  std::optional<std::span<std::byte>> place_for(Link& link, const FrameHeader& header) override;
  void frame_arrived(Link& link, const FrameHeader& header,
                     std::span<const std::byte> payload) override;
  void link_lost(Link& link, const std::string& reason) override;

  void connected(std::unique_ptr<Link> link);
  void not_connected(const ConnectFailure& failure);

  boost::asio::io_context& io_;
  const SwampClientOptions& options_;
  std::function<void()> changed_;
  std::uint64_t rejoined_ = 0;  // as far as has been said
  std::exception_ptr failure_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // as long as this is
  std::unique_ptr<Connector> connector_;
  ReconnectPause pause_;
  LentModels lent_;  // outlives the link
  std::unique_ptr<Link> link_;
  BestModelClient client_;
};

}  // namespace cohort
