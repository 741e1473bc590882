// A worker's side of the conversation with one parameter server, without sockets, threads and
// clock: the counterpart of parameter_server.h, and as the simulator runs it.
//
// It survives the connection: the owner connects again and calls on_connected(), and whatever the
// server may have missed is sent again. What is acknowledged but not yet durable is kept for a
// replay, up to `window_bytes`; when that is full a push waits until the server has made a
// snapshot.
//
// Order of use: on_connected; until joined() is true; worker 0 initialize() if needs_values(); then
// for every step begin_push, extend_push..., pull, until pulled() is true; at the end leave, until
// left() is true. The owner keeps the memory that it lends: gradients, initial values and the place
// for values until the pull that follows is answered; pull() may overwrite the initial values.
// There is one push at a time: the next begins when the last one's outcome is known and its pull
// answered.
//
// A worker is let go, where the server makes snapshots, only when all it pushed is on disk. A
// server that has let everybody go ends: an owner that cannot reach it any more after leave() may
// take that for the farewell.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "membership/conversation_client.h"
#include "network/frame.h"
#include "network/link.h"
#include "server/arena_view.h"
#include "server/job_spec.h"
#include "server/messages.h"

namespace cohort::server {

class ClientPorts {
 public:
  virtual ~ClientPorts() = default;
  virtual void send(const network::FrameHeader& header, std::span<const std::byte> payload,
                    network::Kept kept) = 0;
  // The same without a payload, and it may overtake what is not on its way yet.
  virtual void send_ahead(const network::FrameHeader& header) {
    send(header, {}, network::Kept::kCopy);
  }
  // What a vector is to be cut into.
  virtual std::size_t piece_bytes() const { return kPieceBytes; }
  // Whether values are to come while gradients still go. Within one host, where both ways are the
  // same processors' work, they would only be in each other's way.
  virtual bool both_ways() const { return true; }
};

struct ClientOptions {
  Rank worker = 0;
  JobSpec spec = {};
  membership::JoinKind join = membership::JoinKind::kAnew;
  std::size_t window_bytes = std::size_t{256} << 20;
  std::int64_t min_part =
      16384;  // elements; fewer wait for more: a frame would cost more than it hides
};

// What is in a model.
struct ModelProgress {
  std::uint64_t version = 0;               // updates behind it,
  std::uint64_t skipped = 0;               // but for so many that were lost
  std::vector<std::uint64_t> pushes = {};  // of each worker; empty: not known
  Rank first = 0;                          // of the workers that are not lost
};

struct PushOutcome {
  enum class Kind { kApplied, kDropped, kRejected, kFenced };
  Kind kind = Kind::kApplied;
  std::uint64_t staleness = 0;
  std::string reason = {};  // of a rejection
};

class ShardClient final : public membership::ConversationClient {
 public:
  // `ports` outlives the client.
  ShardClient(const ClientOptions& options, ClientPorts& ports);
  ~ShardClient() override;
  ShardClient(const ShardClient&) = delete;
  ShardClient& operator=(const ShardClient&) = delete;

  // ConversationClient.
  void on_connected(Deadline now) override;
  std::optional<std::span<std::byte>> place_for(const network::FrameHeader& header) override;
  void on_frame(const network::FrameHeader& header, std::span<const std::byte> payload,
                Deadline now) override;
  void on_lost(Deadline now) override;
  const membership::MembershipClient& membership() const override;
  std::string waits_for() const override;

  bool needs_values() const;  // joined, and nobody has brought the initial values yet
  const JoinedBody& joined_body() const;

  // Worker 0. `slots` may be empty: zeros. `behind`: what has made the values.
  void initialize(const ArenaView<const float>& parameters,
                  std::span<const ArenaView<const float>> slots, const ModelProgress& behind);

  // Worker 0, joined, before anything else: the job is to begin again here too, with its values,
  // since other servers have gone back to its checkpoint. It is joined again afterwards.
  void go_back();

  // A new push, of the arena's size. Nothing is sent yet.
  void begin_push(const ArenaView<const float>& gradients);
  // The first `count` elements are final. With the last one the push is whole.
  void extend_push(std::int64_t count);
  // Whether the push that began last has been answered, and how. kFenced: the worker was evicted
  // meanwhile; the push is in no model, and the worker has a new incarnation.
  const std::optional<PushOutcome>& push_outcome() const;

  // The owner will not wait: the push counts only where the server has dealt with it before it
  // hears of this. Pulls the exact parameters; once they are there push_made() tells. One that was
  // not made may be begun again, with the same gradients.
  void take_back(const ArenaView<float>& into);
  bool push_made() const;

  // Asks for the arena, or for the optimizer's vector `which` - 1, after all that was pushed.
  void pull(const ArenaView<float>& into, std::uint32_t which = 0);
  bool pulled() const;            // the last pull is answered whole
  std::uint64_t version() const;  // of the values pulled last
  bool finished() const;          // kSync: the server says that the last update is made
  // Of the values that an exact pull, or one that waits for the others, brought last.
  const ModelProgress& progress() const;

  void leave(membership::LeaveKind how = membership::LeaveKind::kDone);

  std::size_t window() const;  // bytes kept for a replay

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::server
