// One server of the job as the client's thread sees it: the state machine, the connection beneath
// it, and the way between the worker's arenas and the server's.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "membership/worker_channel.h"
#include "server/shard_client.h"
#include "serving/parameter_client.h"

namespace cohort::serving {

class ShardChannel final : public membership::WorkerChannel, private server::ClientPorts {
 public:
  // `options` and what the arenas show outlive the channel. `changed` is called on the io_context's
  // thread after everything that may matter to somebody who waits. So must all methods be, unless
  // they say otherwise.
  ShardChannel(boost::asio::io_context& io, const ParameterClientOptions& options, int server,
               const ClientArenas& arenas, std::function<void()> changed);
  ~ShardChannel() override;

  server::ShardClient& client() { return client_; }
  int server() const { return server_; }

  // Worker 0's initial values.
  void bring(const server::ModelProgress& behind);
  // The server has so many more pushes of this worker than all servers have: the next ones are not
  // for it.
  void leave_out(std::uint64_t pushes) { to_leave_out_ = pushes; }
  void begin_push();
  // The first `count` elements of the worker's arena are complete.
  void extend_push(std::int64_t count);
  void pull_parameters();
  void push(std::int64_t count);  // all three, of an arena that is complete
  void take_back();               // the push, if it is not answered
  bool push_made() const;         // after that
  void pull_exact();              // in float32, whatever the wire carries
  void pull_slot(std::size_t slot);
  void pull_when_alone();  // the parameters, when all other workers are done
  void leave(membership::LeaveKind how);

  bool pulled() const { return size_ == 0 || client_.pulled(); }
  bool step_done() const;   // the push is answered, and so is the pull behind it
  bool was_fenced() const;  // in the push that was made last
  bool left() const { return client_.membership().left(); }
  bool empty() const { return size_ == 0; }
  void add_to(StepOutcome& outcome) const;

 private:
  // ClientPorts
  void send(const network::FrameHeader& header, std::span<const std::byte> payload,
            network::Kept kept) override;
  void send_ahead(const network::FrameHeader& header) override;
  std::size_t piece_bytes() const override;
  bool both_ways() const override;

  void pull(std::span<float> into, std::uint32_t which);
  template <class T>
  server::ArenaView<T> own_part(std::span<T> vector) const;

  const ParameterClientOptions& options_;
  int server_;
  ClientArenas arenas_;
  std::vector<server::Block> blocks_;  // of this server, by place
  std::int64_t size_;                  // of its arena
  std::size_t complete_ = 0;           // blocks of the push under way
  std::uint64_t to_leave_out_ = 0;     // pushes
  bool left_out_ = false;              // the one under way
  server::ShardClient client_;
};

}  // namespace cohort::serving
