#include "runs/server_threads.h"

#include "launch/job_environment.h"

namespace cohort::runs {

ServerThreads::ServerThreads(int servers, int workers, const network::JobId& job,
                             const std::function<void(const std::string&)>& log)
    : folder_(launch::runtime_folder(), "servers"), reports_(static_cast<std::size_t>(servers)) {
  for (int server = 0; server < servers; ++server) {
    serving::ServerProcessOptions options;
    options.listener.address.path =
        (folder_.path() / ("server-" + std::to_string(server))).string();
    options.listener.self = {job, network::Role::kServer, server};
    options.workers = workers;
    options.server.log = log;
    options.server.seed = static_cast<Seed>(server);
    servers_.push_back(std::make_unique<serving::ServerProcess>(std::move(options)));
    addresses_.push_back(servers_.back()->address());
  }
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    threads_.emplace_back([this, server] { reports_[server] = servers_[server]->run(stop_); });
  }
}

ServerThreads::~ServerThreads() {
  stop_ = true;
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  servers_.clear();
}

std::vector<serving::ServerReport> ServerThreads::wait() {
  stop_ = true;  // all workers have ended, however
  for (std::thread& thread : threads_) thread.join();
  return reports_;
}

}  // namespace cohort::runs
