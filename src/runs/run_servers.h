// The servers of a run's workers: those that live in this process, or where the others are.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "engine/assemble.h"
#include "methods/server_access.h"
#include "metrics/metrics_sink.h"
#include "runs/server_threads.h"
#include "runs/swamp_host.h"
#include "storage/dump_writer.h"

namespace cohort::runs {

// What a best-model server of this process judges models by and writes to.
struct RunServerOutlets {
  data::SearchPath data_search = {};
  storage::DumpWriter* dumps = nullptr;     // of accepted models; null: none
  metrics::MetricsSink* metrics = nullptr;  // null: nobody asks
};

class RunServers {
 public:
  // Starts those that the configuration wants in this process; nothing for methods without.
  RunServers(const config::RunConfig& config, const RunServerOutlets& outlets);

  // Where they are, for workers; what they are to be told besides is missing.
  const std::optional<methods::ServerAccess>& access() const { return access_; }

  // After the workers: waits until the servers of this process have ended, which they do when all
  // workers have left. `interrupted`: what waits to be examined is let go.
  std::optional<swamp::SwampReport> wait(bool interrupted);

 private:
  std::optional<methods::ServerAccess> access_;
  std::unique_ptr<ServerThreads> threads_;
  std::unique_ptr<SwampThread> swamp_;
};

}  // namespace cohort::runs
