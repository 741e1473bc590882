// A worker's hand on all parameter servers of its job.
//
// A thread of its own talks to the servers, so that gradients leave while backward goes on and new
// parameters come while the next batch is loaded. Connections that break are made again, for as
// long as `patience`; what the servers may have missed is sent again (server/shard_client.h).
//
// The methods are called from one thread. Between begin_push() and the end of wait() the two arenas
// belong to the client, but for gradients that have not been declared ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/stoppable_wait.h"
#include "core/types.h"
#include "membership/worker_channel.h"
#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "network/link.h"
#include "server/job_spec.h"
#include "server/layout.h"
#include "server/shard_client.h"

namespace cohort::serving {

struct ParameterClientOptions : membership::WorkerOptions {
  std::vector<network::Address> servers = {};
  server::Layout layout = {};               // of the two arenas
  std::vector<server::JobSpec> specs = {};  // one for each server
  membership::JoinKind join = membership::JoinKind::kAnew;
  std::size_t window_bytes = std::size_t{256} << 20;
};

struct StepOutcome {
  std::uint64_t version = 0;    // updates behind the first server's part of the model
  std::uint64_t staleness = 0;  // largest over the servers: updates between our read and our write
  int dropped = 0;              // servers whose round had been made without us
  int rejected = 0;             // servers that found numbers that are not finite
  int fenced = 0;               // servers that had given us up meanwhile
  bool finished = false;        // the last update of the job is made, on all servers
  std::string reason = {};      // of a rejection
};

// The arenas as far as the client needs them.
struct ClientArenas {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::vector<std::span<float>> slots = {};  // the optimizer's vectors, for checkpoints
};

class ParameterClient {
 public:
  ParameterClient(const ParameterClientOptions& options, const ClientArenas& arenas);
  ~ParameterClient();  // leaves without a word if leave() was not called
  ParameterClient(const ParameterClient&) = delete;
  ParameterClient& operator=(const ParameterClient&) = delete;

  // Joins all servers; worker 0 brings the values of the arenas (and what is `behind` them) to
  // servers that have none; then takes everybody's common values. Returns how many steps of this
  // worker all servers have. Throws ConfigError when a server will not have this worker, PeerError
  // naming the servers that did not answer.
  std::uint64_t start(const server::ModelProgress& behind, Deadline deadline);

  // A push of the gradients begins; the first `count` of the arena are complete.
  void begin_push();
  void extend_push(std::int64_t count);
  // The gradients are whole: the rest is sent, and new parameters are asked for.
  void finish_push();
  // Returns when the arena holds the new parameters. Throws PeerError when a server stays away, or
  // `deadline` passes.
  StepOutcome wait(Deadline deadline);

  // After a wait() that the user has ended: takes the push back where it is not in the model, and
  // the parameters as they are without it. One that some servers have dealt with is pushed again to
  // the others. Returns whether it is in the model after all.
  bool take_back(Deadline deadline);

  // Takes the newest parameters, and the optimizer's vectors too when `with_slots`.
  void refresh(bool with_slots, Deadline deadline);

  // After a wait() with `fenced`: the same gradients once more, for those servers that had given
  // this worker up. To be followed by wait().
  void push_again();

  // Takes the parameters once all other workers are done or given up.
  void wait_for_others();
  // Takes them if that is so already; whether it is.
  bool others_are_gone();

  // What each server had in its model when it was refreshed last, or the others were waited for;
  // nothing of servers without a part of it.
  std::vector<server::ModelProgress> progress();

  // Says how this worker's part in the job ended. Never throws: servers that are gone need not be
  // told.
  void leave(membership::LeaveKind how, Deadline deadline) noexcept;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cohort::serving
