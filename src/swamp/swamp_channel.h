// The best-model server as the client's thread sees it: the state machine and the connection
// beneath it.
#pragma once

#include <functional>

#include "membership/worker_channel.h"
#include "swamp/best_model_client.h"
#include "swamp/lent_models.h"
#include "swamp/swamp_client.h"

namespace cohort::swamp {

class SwampChannel final : public membership::WorkerChannel, private SwampClientPorts {
 public:
  // As WorkerChannel.
  SwampChannel(boost::asio::io_context& io, const SwampClientOptions& options,
               std::function<void()> changed)
      : membership::WorkerChannel(io, options, 0, options.server, "the best-model server",
                                  std::move(changed)),
        client_(options.worker, options.spec, *this) {
    serve(client_);
  }
  ~SwampChannel() override { drop_link(); }

  BestModelClient& client() { return client_; }

 private:
  void send(const network::FrameHeader& header, std::span<const std::byte> payload,
            const ModelValues& owner) override {
    if (link() != nullptr) lent_.send(*link(), header, payload, owner);
  }
  void frame_arrived(network::Link& from, const network::FrameHeader& header,
                     std::span<const std::byte> payload) override {
    membership::WorkerChannel::frame_arrived(from, header, payload);
    lent_.release(from);
  }

  LentModels lent_;  // outlives the link
  BestModelClient client_;
};

}  // namespace cohort::swamp
