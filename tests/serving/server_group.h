// Parameter servers in threads of a test, behind Unix sockets in a folder of its own.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serving/parameter_client.h"
#include "serving/server_process.h"

namespace cohort::serving {

class ServerGroup {
 public:
  explicit ServerGroup(int servers, bool keeps_state = false,
                       std::chrono::nanoseconds snapshot_every = std::chrono::seconds(5)) {
    std::string pattern = std::filesystem::temp_directory_path() / "cohort-serving-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (int server = 0; server < servers; ++server) {
      servers_.push_back(std::make_unique<Server>());
      ServerProcessOptions& options = servers_.back()->options;
      options.listener.address.path = (folder_ / ("s" + std::to_string(server))).string();
      options.listener.self = {job, network::Role::kServer, server};
      options.server.snapshot_every = snapshot_every;
      if (keeps_state) options.state_dir = folder_ / ("state" + std::to_string(server));
      start(server);
    }
  }
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;
  ~ServerGroup() {
    for (std::size_t server = 0; server < servers_.size(); ++server) stop(static_cast<int>(server));
    std::filesystem::remove_all(folder_);
  }

  std::vector<network::Address> addresses() const {
    std::vector<network::Address> all;
    for (const auto& server : servers_) all.push_back(server->options.listener.address);
    return all;
  }

  void start(int number) {
    Server& server = *servers_[static_cast<std::size_t>(number)];
    server.stop = false;
    server.options.server.seed = ++starts_;  // another process
    server.process = std::make_unique<ServerProcess>(server.options);
    server.thread = std::thread([&server] { server.report = server.process->run(server.stop); });
  }

  // Without a farewell or a last snapshot, as if it had been killed.
  void stop(int number) {
    Server& server = *servers_[static_cast<std::size_t>(number)];
    server.stop = true;
    if (server.thread.joinable()) server.thread.join();
    server.process.reset();
  }

  // Waits until it has ended by itself.
  const ServerReport& ended(int number) {
    Server& server = *servers_[static_cast<std::size_t>(number)];
    server.thread.join();
    return server.report;
  }

  network::JobId job = network::job_id_of("a test");

 private:
  struct Server {
    ServerProcessOptions options;
    std::atomic<bool> stop = false;
    ServerReport report;
    std::unique_ptr<ServerProcess> process;
    std::thread thread;
  };

  std::filesystem::path folder_;
  Seed starts_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace cohort::serving
