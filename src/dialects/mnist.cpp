#include "dialects/mnist.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "dialects/flag_checks.h"
#include "dialects/host_list.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

// Who takes part, and which of them this process is.
struct Cluster {
  std::vector<std::string> servers;
  std::vector<std::string> workers;
  std::string job;  // "ps" or "worker"
  std::int64_t index = 0;
};

void check_flags(const MnistFlags& flags) {
  check_range("--batch_size", static_cast<double>(flags.batch_size), 1, 1 << 24);
  check_range("--learning_rate", flags.learning_rate, 0, 1e6);
  check_range("--training_epochs", static_cast<double>(flags.training_epochs), 1, 1e9);
  check_range("--validation_size", static_cast<double>(flags.validation_size), 0, 1e15);
  check_range("--peer_timeout", flags.peer_timeout, 1, 1e6);
  check_range("--seed", static_cast<double>(flags.seed), 0, 1e15);
}

Cluster cluster_of_flags(const MnistFlags& flags) {
  const std::vector<std::string> jobs = {"ps", "worker"};
  if (flags.job_name.empty()) {
    throw ConfigError(
        "--job_name says what this process is: ps or worker; with --local there are no servers");
  }
  if (std::find(jobs.begin(), jobs.end(), flags.job_name) == jobs.end()) {
    throw ConfigError(unknown_name("--job_name", flags.job_name, jobs));
  }
  if (flags.ps_hosts.empty() || flags.worker_hosts.empty()) {
    throw ConfigError(fmt::format("{} is needed, e.g. --{}=10.10.10.94:2222",
                                  flags.ps_hosts.empty() ? "--ps_hosts" : "--worker_hosts",
                                  flags.ps_hosts.empty() ? "ps_hosts" : "worker_hosts"));
  }
  return {parse_hosts("--ps_hosts", flags.ps_hosts),
          parse_hosts("--worker_hosts", flags.worker_hosts, Repeats::kAllowed), flags.job_name,
          flags.task_index.value_or(0)};
}

std::vector<std::string> tasks_of(const nlohmann::json& cluster, const char* job,
                                  Repeats repeats = Repeats::kAllowed) {
  const auto found = cluster.find(job);
  if (found == cluster.end()) return {};
  std::vector<std::string> hosts;
  for (const nlohmann::json& host : *found) hosts.push_back(host.get<std::string>());
  if (hosts.empty()) return hosts;
  return parse_hosts(fmt::format("TF_CONFIG's cluster.{}", job), join(hosts, ","), repeats);
}

// A chief, called master before TensorFlow 1.7, is the first of the workers.
Cluster cluster_of(const nlohmann::json& document) {
  const nlohmann::json& servers = document.at("cluster");
  const nlohmann::json& task = document.at("task");
  Cluster cluster;
  cluster.servers = tasks_of(servers, "ps", Repeats::kRefused);
  for (const char* first : {"chief", "master"}) {
    for (std::string& host : tasks_of(servers, first)) cluster.workers.push_back(std::move(host));
  }
  const auto chiefs = static_cast<std::int64_t>(cluster.workers.size());
  for (std::string& host : tasks_of(servers, "worker")) cluster.workers.push_back(std::move(host));
  const std::string type = task.at("type").get<std::string>();
  cluster.index = task.value("index", std::int64_t{0});
  if (type == "ps") {
    cluster.job = "ps";
  } else if (type == "worker" || type == "chief" || type == "master") {
    if (cluster.index < 0) throw ConfigError("TF_CONFIG's task.index counts from 0");
    if (type == "worker") cluster.index += chiefs;
    cluster.job = "worker";
  } else {
    throw ConfigError("TF_CONFIG's task.type is '" + type +
                      "': this example has ps, worker and chief; each worker evaluates by itself");
  }
  if (cluster.servers.empty() || cluster.workers.empty()) {
    throw ConfigError("TF_CONFIG's cluster needs a ps and a worker");
  }
  return cluster;
}

Cluster cluster_of_variable(const std::string& text) {
  try {
    return cluster_of(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(std::string("TF_CONFIG is not as TensorFlow defines it, e.g. "
                                  R"({"cluster": {"ps": ["a:2222"], "worker": ["b:2222"]}, )"
                                  R"("task": {"type": "worker", "index": 0}}: )") +
                      error.what());
  }
}

config::RunConfig training_of(const MnistFlags& flags) {
  config::RunConfig config;
  config.model = "mlp-100";
  config.data = "mnist";
  config.data_dir = flags.data_dir;
  config.normalize = "none";
  config.augment = "none";
  config.train_skip = flags.validation_size;
  config.batch = flags.batch_size;
  config.drop_last = true;  // int(num_examples / batch_size) batches an epoch
  config.optimizer = "sgd";
  config.lr = flags.learning_rate;
  config.momentum = 0;
  config.epochs = flags.training_epochs;
  config.seed = flags.seed;
  config.eval_every = 0;
  // One at the end: a hundredth of a second of disk for every two of training otherwise.
  config.checkpoint_every = 1'000'000'000'000;
  config.record_every = 100;
  config.peer_timeout = flags.peer_timeout;
  config.job = flags.job;
  config.token_file = flags.token_file;
  config.tls_dir = flags.tls_dir;
  config.insecure = flags.insecure;
  return config;
}

}  // namespace

MnistTranslation translate(const MnistFlags& flags, const std::string& tf_config) {
  check_flags(flags);
  MnistTranslation result;
  result.config = training_of(flags);
  const bool given = !flags.ps_hosts.empty() || !flags.worker_hosts.empty() ||
                     !flags.job_name.empty() || flags.task_index;
  if (flags.local) {
    if (given) {
      throw ConfigError(
          "--local trains without servers: leave out --ps_hosts, --worker_hosts, --job_name and "
          "--task_index");
    }
    if (flags.sync) result.notes.emplace_back("--sync has no effect on one worker alone");
    methods::check_config(result.config);
    return result;
  }
  if (given && !tf_config.empty()) {
    result.notes.emplace_back("TF_CONFIG is set, but the flags count");
  }
  const Cluster cluster =
      given || tf_config.empty() ? cluster_of_flags(flags) : cluster_of_variable(tf_config);
  const bool server = cluster.job == "ps";
  const std::size_t tasks = server ? cluster.servers.size() : cluster.workers.size();
  if (cluster.index < 0 || cluster.index >= static_cast<std::int64_t>(tasks)) {
    throw ConfigError(fmt::format("task {} of job '{}': there {} {}, counted from 0", cluster.index,
                                  cluster.job, tasks == 1 ? "is" : "are", tasks));
  }
  result.role = server ? MnistRole::kServer : MnistRole::kWorker;
  result.index = static_cast<int>(cluster.index);
  result.servers = cluster.servers;
  result.workers = static_cast<int>(cluster.workers.size());
  config::RunConfig& config = result.config;
  config.method = "parameter-server";
  config.servers = join(cluster.servers, ",");
  config.server_mode = flags.sync ? "sync" : "async";
  config.sharding = "whole";
  config.partition = "all";
  config.workers = result.workers;
  if (!server) config.rank = cluster.index;
  methods::check_config(config);
  return result;
}

std::vector<std::string> mnist_server_settings() { return {"server-mode"}; }

const FlagNames& mnist_flag_names() {
  static const FlagNames names = {
      {"batch", "--batch_size"},
      {"lr", "--learning_rate"},
      {"epochs", "--training_epochs"},
      {"train-skip", "--validation_size"},
      {"seed", "--seed"},
      {"server-mode", "--sync (or not): the update"},
      {"servers", "the number of --ps_hosts"},
      {"workers", "the number of --worker_hosts"},
      {"rank", "--task_index"},
      {"data-dir", "--data_dir"},
      {"job", "--job"},
      {"token-file", "--token_file"},
      {"tls-dir", "--tls_dir"},
      {"insecure", "--insecure"},
      {"peer-timeout", "--peer_timeout"},
      {"state-dir", "--state_dir"},
      {"runs-dir", "--logs_path"},
      {"resume", "cohort train --resume"},
  };
  return names;
}

}  // namespace cohort::dialects
