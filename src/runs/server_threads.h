// Parameter servers for the workers of this very process, each a thread behind a Unix socket in a
// folder that nobody else can enter.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/private_folder.h"
#include "network/address.h"
#include "network/identity.h"
#include "serving/server_process.h"

namespace cohort::runs {

class ServerThreads {
 public:
  ServerThreads(int servers, int workers, const network::JobId& job,
                const std::function<void(const std::string&)>& log);
  ~ServerThreads();  // ends them
  ServerThreads(const ServerThreads&) = delete;
  ServerThreads& operator=(const ServerThreads&) = delete;

  const std::vector<network::Address>& addresses() const { return addresses_; }

  // Waits until all have ended, which they do after the last worker has left.
  std::vector<serving::ServerReport> wait();

 private:
  PrivateFolder folder_;  // of the sockets
  std::atomic<bool> stop_{false};
  std::vector<network::Address> addresses_;
  std::vector<std::unique_ptr<serving::ServerProcess>> servers_;
  std::vector<serving::ServerReport> reports_;  // by server, each written by its thread
  std::vector<std::thread> threads_;
};

}  // namespace cohort::runs
