#include "config/fields.h"
#include "core/error.h"
#include "methods/async_momentum.h"
#include "methods/server_method.h"
#include "methods/shared_settings.h"

namespace cohort::methods {
namespace {

std::vector<config::ConfigField> parameter_server_fields() {
  std::vector<config::ConfigField> all = {
      {"server-mode",
       config::setting_group::kServers,
       &config::RunConfig::server_mode,
       "when a gradient counts: in rounds of all, at once, or at once within --staleness",
       0,
       0,
       {"sync", "async", "ssp"}},
      {"staleness",
       config::setting_group::kServers,
       &config::RunConfig::staleness,
       "ssp: steps that a worker may be ahead of the slowest",
       0,
       1e9,
       {}},
      {"backup-workers",
       config::setting_group::kServers,
       &config::RunConfig::backup_workers,
       "sync: a round does not wait for the last so many",
       0,
       65535,
       {}},
      {"delay-compensation",
       config::setting_group::kServers,
       &config::RunConfig::delay_compensation,
       "async, ssp: lambda by which late gradients are corrected; 0: off",
       0,
       1e6,
       {}},
      {"sharding",
       config::setting_group::kServers,
       &config::RunConfig::sharding,
       "what a server keeps: whole tensors by turns, slices of all, or tensors by hash",
       0,
       0,
       {"whole", "sliced", "hash"}},
      {"wire",
       config::setting_group::kServers,
       &config::RunConfig::wire,
       "numbers between workers and servers",
       0,
       0,
       {"float32", "float16", "bfloat16"}},
      {"replay-window",
       config::setting_group::kServers,
       &config::RunConfig::replay_window,
       "MiB of pushes kept until a server has them on disk",
       1,
       1 << 20,
       {}},
  };
  const std::vector<config::ConfigField> places = server_place_fields();
  all.insert(all.begin(), places.front());
  all.push_back(places.back());
  return all;
}

void check_parameter_servers(const config::RunConfig& config) {
  const config::RunConfig usual;
  const bool sync = config.server_mode == "sync";
  config::refuse_idle(config.staleness != usual.staleness && config.server_mode != "ssp",
                      "staleness", "--server-mode ssp");
  config::refuse_idle(config.backup_workers > 0 && !sync, "backup-workers", "--server-mode sync");
  config::refuse_idle(config.delay_compensation > 0 && sync, "delay-compensation",
                      "--server-mode async or ssp");
  if (config.start_epoch > 0) {
    throw ConfigError(
        "--start-epoch: parameter servers count the epochs by themselves, from 0; leave it out, or "
        "use another --method");
  }
  if (config.clip_norm > 0) {
    throw ConfigError(
        "--clip-norm needs the whole gradient in one place, which no parameter "
        "server has: leave it out, or use --method all-reduce");
  }
}

}  // namespace

MethodTraits server_traits() {
  return {.servers = MethodTraits::Servers::kParameters,
          .settings = parameter_server_fields(),
          .adapt = adapt_momentum,
          .check = check_parameter_servers};
}

}  // namespace cohort::methods
