// A best-model server at work: the state machine of swamp/best_model_server.h behind a listener,
// its examiner in a thread of its own, and what it accepted on disk.
//
// Three threads: one talks to the workers, one examines, one writes. Examining holds up neither
// offers nor pulls. Many servers may live in one process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "network/listener.h"
#include "swamp/best_model_server.h"
#include "swamp/examiner.h"
#include "swamp/swamp_report.h"
#include "swamp/swamp_spec.h"

namespace cohort::swamp {

struct SwampServerOptions : membership::MembershipOptions {
  network::ListenerOptions listener = {};
  std::filesystem::path state_dir = {};  // empty: nothing survives a restart
  std::string told = {};                 // what every worker's job must have: swamp_spec.h
  int workers = 0;                       // ranks from here on are refused; 0: the first worker says
  // A model is the best now, and durable where there is a state_dir. On the examiner's thread, in
  // the order of versions, before run() returns. Not of the one that a restarted server begins
  // with. An exception is logged.
  std::function<void(std::uint64_t version, double loss, std::span<const float> values)> accepted =
      {};
  // On the examiner's thread, once, when the first worker has said what the job is. What it throws
  // ends the server: workers are told, and run() throws it.
  std::function<std::unique_ptr<Examiner>(const SwampSpec&)> make_examiner = {};
};

class SwampServer {
 public:
  // Listens from here on; what was kept in state_dir is loaded. Throws ConfigError or FileError.
  explicit SwampServer(SwampServerOptions options);
  ~SwampServer();  // without a word, as if it had been killed, if run() has not ended
  SwampServer(const SwampServer&) = delete;
  SwampServer& operator=(const SwampServer&) = delete;

  const network::Address& address() const;

  // Serves until the job is over or `stop` is true. Called once.
  SwampReport run(const std::atomic<bool>& stop);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cohort::swamp
