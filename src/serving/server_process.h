// A parameter server at work: the state machine of server/parameter_server.h behind a listener,
// with its snapshots on disk.
//
// One thread does everything but writing snapshots. Many servers may live in one process.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "network/listener.h"
#include "server/parameter_server.h"
#include "serving/snapshot_store.h"

namespace cohort::serving {

struct ServerProcessOptions {
  network::ListenerOptions listener;     // its identity's rank is the server's number
  server::ServerOptions server;          // keeps_state and the number follow from the rest
  std::filesystem::path state_dir = {};  // empty: no snapshots
  int workers = 0;                       // ranks from here on are refused; 0: the first worker says
  // How long a server that is stopped still serves workers which got the same signal: they save the
  // model, which is here.
  std::chrono::milliseconds time_to_leave = std::chrono::seconds(5);
};

struct ServerReport {
  std::string reason;  // why it ended
  bool well = false;   // every worker was done, and no update is missing
  server::ServerCounters counters;
  network::Refusals refusals;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

class ServerProcess {
 public:
  // Listens from here on; what was kept in state_dir is loaded. Throws ConfigError or FileError.
  explicit ServerProcess(ServerProcessOptions options);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const network::Address& address() const;

  // Serves until the job is over or `stop` is true, and then until the workers have left or
  // time_to_leave has passed. Called once.
  ServerReport run(const std::atomic<bool>& stop);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cohort::serving
