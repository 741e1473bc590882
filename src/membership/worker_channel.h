// A worker's connection to one server: connects, and again when it is lost; hands frames to the
// conversation's client; says why there is no use in going on.
//
// Everything on the io_context's thread.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/stoppable_wait.h"
#include "membership/conversation_client.h"
#include "network/connector.h"
#include "network/link.h"
#include "network/reconnect_pause.h"

namespace cohort::membership {

// What a worker needs to know of itself to talk to any server.
struct WorkerOptions {
  network::JobId job = {};
  Rank worker = 0;
  network::Credentials credentials = {};
  std::string runtime_folder = {};  // network/connector.h
  bool shared_memory = true;
  network::LinkOptions links = {};
  std::chrono::nanoseconds patience = std::chrono::seconds(60);  // with a server that is gone
  std::function<void(const std::string&)> note = {};             // a line for people; any thread
  StopFlag stop = nullptr;  // ends every wait with an InterruptedError
};

class WorkerChannel : protected network::LinkHandler {
 public:
  // `options` outlive the channel. `name`: of the server, in messages. `changed` is called after
  // everything that may matter to somebody who waits.
  WorkerChannel(boost::asio::io_context& io, const WorkerOptions& options, Rank server,
                network::Address address, std::string name, std::function<void()> changed);
  ~WorkerChannel() override;

  void connect(Deadline deadline);  // the first time; later by itself
  bool connecting() const { return connector_ != nullptr || link_ != nullptr; }
  bool connected() const { return link_ != nullptr; }
  // Why there is no use in going on; null as long as there is.
  std::exception_ptr failure() const { return failure_; }
  std::string text() const;  // "server 1 at host:port (what it waits for)"

 protected:
  void serve(ConversationClient& client) { client_ = &client; }  // before connect()
  network::Link* link() const { return link_.get(); }
  // Before what was lent to it, or the client, goes.
  void drop_link() { link_.reset(); }

  // LinkHandler
  std::optional<std::span<std::byte>> place_for(network::Link& link,
                                                const network::FrameHeader& header) override;
  void frame_arrived(network::Link& link, const network::FrameHeader& header,
                     std::span<const std::byte> payload) override;
  void link_lost(network::Link& link, const std::string& reason) override;

 private:
  void linked(std::unique_ptr<network::Link> link);
  void not_linked(const network::ConnectFailure& failure);
  std::string worker_text() const { return "worker " + std::to_string(options_.worker); }

  boost::asio::io_context& io_;
  const WorkerOptions& options_;
  const Rank server_;
  const network::Address address_;
  const std::string name_;
  std::function<void()> changed_;
  ConversationClient* client_ = nullptr;
  std::uint64_t rejoined_ = 0;  // as far as has been said
  std::exception_ptr failure_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // as long as this is
  std::unique_ptr<network::Connector> connector_;
  network::ReconnectPause pause_;
  std::unique_ptr<network::Link> link_;
};

}  // namespace cohort::membership
