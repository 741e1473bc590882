#include "runs/job_choice.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "compressors/registry.h"
#include "core/error.h"
#include "engine/assemble.h"
#include "engine/device.h"
#include "launch/job_environment.h"
#include "launch/lone_job.h"
#include "methods/method_traits.h"
#include "methods/update_method.h"
#include "network/address.h"
#include "runs/host_workers.h"
#include "topology/registry.h"

namespace cohort::runs {
namespace {

constexpr int kMaxServers = 1024;

// The GPU that all workers of this one process are on.
std::optional<int> shared_gpu(const config::RunConfig& config) {
  const auto size = static_cast<int>(config.workers);
  std::optional<at::Device> shared;
  for (Rank rank = 0; rank < size; ++rank) {
    const at::Device device = engine::worker_device(config, {rank, size, rank});
    if (!device.is_cuda() || device != shared.value_or(device)) return {};
    shared = device;
  }
  return size > 1 ? std::optional<int>(shared->index()) : std::nullopt;
}

}  // namespace

void check_names(const config::RunConfig& config) {
  methods::methods().find(config.method);
  models::models().find(config.model);
  data::data_sets().find(config.data);
  optimizers::optimizers().find(config.optimizer);
  schedules::schedules().find(config.schedule);
  topology::topologies().find(config.topology);
  compressors::compressors().find(config.compressor);
  engine::parse_device(config.device);
}

std::unique_ptr<launch::Job> join_job(config::RunConfig& config, const JobPlace& place,
                                      const Note& note) {
  if (config.engine == "auto") config.engine = launch::default_engine();
  launch::check_engine(config.engine);
  const int processes = launch::launched_processes();
  if (processes > 1 && (config.engine == "threads" || config.engine == "nccl")) {
    throw ConfigError("--engine " + config.engine +
                      " lives in one process, but a launcher started " + std::to_string(processes) +
                      ", each of which would train alone: leave " +
                      "--engine out, or start one process");
  }
  if (config.engine == "nccl") {
    if (config.device == "cpu") config.device = "cuda";  // what else could it sum on
    engine::parse_device(config.device);
    if (!config.world.empty()) {
      throw ConfigError(
          "--engine nccl gives worker n the GPU n: leave out --world, or use "
          "--engine threads");
    }
  }
  launch::JobOptions options;
  options.workers = static_cast<int>(config.workers);
  const methods::MethodTraits& traits = methods::traits_of(config.method);
  options.messages = traits.own_state;
  options.outlives_losses = traits.survives_losses;
  options.returns = place.rejoin;
  if (config.engine == "threads") options.shared_gpu = shared_gpu(config);
  for (const std::string& address : place.rejoin_at) {
    options.returns_to.push_back(network::parse_address(address));
  }
  if (place.rejoin && (config.engine != "tcp" || !options.outlives_losses)) {
    throw ConfigError("--rejoin is for gossip with --engine tcp: other jobs end with the first " +
                      std::string("process that is lost, and go on with --resume"));
  }
  if (config.engine == "tcp") {
    options.job = config.job;
    options.meet = config.meet;
    for (const std::string& address : place.addresses) {
      options.addresses.push_back(network::parse_address(address));
    }
    options.processes = place.processes;
    if (!place.addresses.empty() || place.processes > 0) {  // started by hand, one after another
      options.process = place.process;
      options.start_timeout =
          std::chrono::duration_cast<std::chrono::milliseconds>(engine::patience(config));
    }
    options.credentials =
        launch::find_credentials(config.token_file, config.tls_dir, config.insecure);
    options.note = note;
  }
  auto job = launch::engines().make(config.engine, options);
  config.workers = job->shape().size;
  return job;
}

std::optional<int> servers_to_start(const config::RunConfig& config) {
  int servers = 0;
  const char* end = config.servers.data() + config.servers.size();
  const auto parsed = std::from_chars(config.servers.data(), end, servers);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  if (servers >= 1 && servers <= kMaxServers) return servers;
  throw ConfigError("--servers takes a number from 1 to " + std::to_string(kMaxServers) +
                    ", or addresses: host:port,host:port; got '" + config.servers + "'");
}

std::unique_ptr<launch::Job> join_servers(config::RunConfig& config, bool launched,
                                          const Note& note) {
  static_cast<void>(network::parse_addresses(config.servers));  // is what it should be
  if (config.workers < 1) {
    throw ConfigError("give --workers: how many workers the servers at " + config.servers +
                      " have, the same for all");
  }
  if (config.rank < 0 && config.workers == 1) config.rank = 0;
  if (config.rank < 0 || config.rank >= config.workers) {
    throw ConfigError("give each worker its --rank from 0 to " +
                      std::to_string(config.workers - 1));
  }
  config.engine = "threads";
  const auto workers = static_cast<int>(config.workers);
  const std::vector<network::Address> servers = network::parse_addresses(config.servers);
  // What only this host can reach has all its workers here.
  const bool all_here =
      launched || std::all_of(servers.begin(), servers.end(), network::is_of_this_host_alone);
  const auto rank = static_cast<Rank>(config.rank);
  const int here =
      all_here ? workers
               : workers_on_this_host(launch::find_job_name(config.job) + config.servers, rank);
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (!all_here && here > 1 && config.threads == 0) {
    note(
        fmt::format("{} workers of this job are on this host of {} cores: for an even share start "
                    "each with --threads {}",
                    here, cores, std::max(1, cores / here)));
  }
  return launch::make_lone_job(rank, workers, here);
}

void check_method_suits(const config::RunConfig& config, const launch::Job& job,
                        const std::string& resumed) {
  const methods::MethodTraits& traits = methods::traits_of(config.method);
  const launch::JobShape shape = job.shape();
  const bool alone = traits.workers == methods::MethodTraits::Workers::kOneAlone;
  if (alone && shape.size > 1 && !resumed.empty()) {
    throw ConfigError(fmt::format(
        "the run {0} trains one worker alone (--method {2}), which cannot change when it is "
        "resumed: leave out --workers, or start a run of {1} workers from its weights:\n"
        "  cohort export {0} --which latest -o model.safetensors\n"
        "  cohort train --init model.safetensors --method all-reduce --workers {1} ...",
        resumed, shape.size, config.method));
  }
  if (alone && shape.size > 1) {
    throw ConfigError("--method " + config.method + " trains one worker alone, but there are " +
                      std::to_string(shape.size) + ": give --method all-reduce");
  }
  if (traits.workers == methods::MethodTraits::Workers::kOneProcess && shape.processes > 1) {
    throw ConfigError("--method " + config.method + " lives in one process, but there are " +
                      std::to_string(shape.processes) + ": use --method all-reduce");
  }
  // One worker has no neighbours and would never look into the file.
  if (shape.size == 1 && !config.topology_file.empty()) {
    try {
      topology::topologies().make(
          config.topology, {.size = 1, .seed = 0, .degree = 0, .file = config.topology_file});
    } catch (const ConfigError& error) {
      throw ConfigError(std::string(error.what()) + "; there is one worker, see --workers");
    }
  }
  if (!traits.in_step() && shape.processes > 1) {
    throw ConfigError("--method " + config.method +
                      " has workers that know only the servers: "
                      "start it with cohort launch --servers, or give --servers host:port");
  }
}

}  // namespace cohort::runs
