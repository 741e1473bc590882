// How a worker reaches its servers (parameter servers, or one that keeps the best model), and what
// it tells them about the job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/stoppable_wait.h"
#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "server/job_spec.h"
#include "server/layout.h"
#include "swamp/swamp_spec.h"

namespace cohort::methods {

struct ServerAccess {
  std::vector<network::Address> servers = {};
  network::JobId job = {};
  network::Credentials credentials = {};
  std::string runtime_folder = {};  // network/connector.h

  // All of it but what follows from the model: sizes, decay, digest.
  server::JobSpec spec = {};
  std::int64_t updates_asked = 0;  // of the whole job, in all modes
  server::Sharding sharding = server::Sharding::kSliced;
  double weight_decay = 0;
  bool decay_normalization = true;

  swamp::SwampSpec swamp = {};  // of --method swamp; likewise

  std::size_t window_bytes = std::size_t{256} << 20;
  bool wait_for_others = true;  // worker 0 ends when all have: the model is then everybody's
  std::function<void(const std::string&)> note = {};  // a line for people, from any thread
  StopFlag stop = nullptr;                            // ends waits for servers
};

}  // namespace cohort::methods
