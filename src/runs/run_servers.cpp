#include "runs/run_servers.h"

#include <utility>

#include "launch/job_environment.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "methods/update_method.h"
#include "network/identity.h"
#include "runs/job_choice.h"

namespace cohort::runs {

RunServers::RunServers(const config::RunConfig& config, const RunServerOutlets& outlets) {
  const methods::MethodTraits& traits = methods::traits_of(config.method);
  if (traits.in_step()) return;
  methods::ServerAccess& access = access_.emplace();
  const std::optional<int> own = servers_to_start(config);
  if (!own) {
    access.servers = network::parse_addresses(config.servers);
    access.job = network::job_id_of(launch::find_job_name(config.job));
    access.credentials =
        launch::find_credentials(config.token_file, config.tls_dir, config.insecure);
    access.runtime_folder = launch::runtime_folder();
    return;
  }
  access.job = network::random_job_id();
  const auto workers = static_cast<int>(config.workers);
  if (traits.servers == methods::MethodTraits::Servers::kBestModel) {
    SwampHostOptions options;
    options.config = config;
    options.data_search = outlets.data_search;
    options.server.workers = workers;
    options.dumps = outlets.dumps;
    options.metrics = outlets.metrics;
    swamp_ = std::make_unique<SwampThread>(std::move(options), access.job);
    access.servers = {swamp_->address()};
  } else {
    threads_ =
        std::make_unique<ServerThreads>(*own, workers, access.job, [](const std::string&) {});
    access.servers = threads_->addresses();
  }
}

std::optional<swamp::SwampReport> RunServers::wait(bool interrupted) {
  if (threads_) threads_->wait();
  if (!swamp_) return std::nullopt;
  if (interrupted) swamp_->stop();
  return swamp_->wait();
}

}  // namespace cohort::runs
