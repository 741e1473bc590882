// A worker's hand on the best-model server.
//
// A thread of its own talks to the server, so that models leave and verdicts come while training
// goes on. Connections that break are made again, for as long as `patience`; offers that the server
// has not judged are sent again, each under its number, so that none counts twice.
//
// The methods are called from one thread. Each but take_verdict() and leave() throws ConfigError
// when the server will not have this worker, and PeerError naming the server when it stays away or
// a deadline passes; after a deadline the same call may be made again, after the other failures
// there is no use in that.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/stoppable_wait.h"
#include "core/types.h"
#include "membership/worker_channel.h"
#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "network/link.h"
#include "swamp/swamp_spec.h"
#include "swamp/verdict.h"

namespace cohort::swamp {

struct SwampClientOptions : membership::WorkerOptions {
  network::Address server = {};
  SwampSpec spec = {};
};

class SwampClient {
 public:
  explicit SwampClient(const SwampClientOptions& options);
  ~SwampClient();  // goes without a word if leave() was not called
  SwampClient(const SwampClient&) = delete;
  SwampClient& operator=(const SwampClient&) = delete;

  // Joins. Worker 0 brings `values` to a server that has none; then everybody's `values` become the
  // server's: its best model, or worker 0's initial values (version 0), which are waited for.
  PulledModel start(std::span<float> values, Deadline deadline);

  // Copies the model and returns, its number; waits only while kUnsentOffers are not under way yet
  // (no connection, or kOfferWindow before them are not judged).
  std::uint64_t offer(std::span<const float> values, double claim, Deadline deadline);

  // The oldest verdict that was not taken yet. Not always in the order of the offers.
  std::optional<OfferVerdict> take_verdict();

  // Asks for the model that the policy gives; nothing when there is none for this worker.
  // `has_version`: of the model pulled last, 0 for none; what the server accepted of this worker
  // counts as pulled. Where nothing comes, or this throws, `into` is as it was.
  std::optional<PulledModel> pull(std::span<float> into, std::uint64_t has_version,
                                  Deadline deadline);

  // Waits, however long, until all other workers are done or given up and every offer is judged;
  // then the best model. Nothing when none was ever accepted.
  std::optional<PulledModel> final_best(std::span<float> into);

  // Says that this worker is done and waits until all its offers are judged; their verdicts can be
  // taken afterwards. Never throws: a server that is gone need not be told.
  void leave(Deadline deadline) noexcept;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cohort::swamp
