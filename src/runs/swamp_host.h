// A best-model server with the network and the data that it judges models by: for the workers of
// this process, or as a process of its own (`cohort serve-best`).
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "config/run_config.h"
#include "core/private_folder.h"
#include "data/registry.h"
#include "engine/assemble.h"
#include "engine/swamp_examiner.h"
#include "metrics/metrics_sink.h"
#include "storage/dump_writer.h"
#include "swamp/swamp_server.h"

namespace cohort::runs {

struct SwampHostOptions {
  config::RunConfig config;  // the workers'
  data::SearchPath data_search = {};
  swamp::SwampServerOptions server = {};    // without examiner and what happens to accepted models
  storage::DumpWriter* dumps = nullptr;     // of accepted models; null: none
  metrics::MetricsSink* metrics = nullptr;  // what they were worth; null: nobody asks
  double earlier_seconds = 0;               // of the run, before this server began
};

class SwampHost {
 public:
  explicit SwampHost(SwampHostOptions options);

  const network::Address& address() const { return server_.address(); }

  // Serves until the job is over or `stop` is true. Called once.
  swamp::SwampReport run(const std::atomic<bool>& stop) { return server_.run(stop); }

 private:
  swamp::SwampServerOptions complete(swamp::SwampServerOptions options);
  std::unique_ptr<swamp::Examiner> make_examiner();
  void accepted(std::uint64_t version, double loss, std::span<const float> values);

  SwampHostOptions options_;
  Clock::time_point start_;
  std::unique_ptr<data::DataSplits> data_;     // the examiner's
  engine::SwampExaminer* examiner_ = nullptr;  // the server has it
  swamp::SwampServer server_;
};

// The one for the workers of this process, in a thread of its own, behind a Unix socket in a folder
// that nobody else can enter.
class SwampThread {
 public:
  SwampThread(SwampHostOptions options, const network::JobId& job);
  ~SwampThread();  // ends it
  SwampThread(const SwampThread&) = delete;
  SwampThread& operator=(const SwampThread&) = delete;

  const network::Address& address() const { return host_->address(); }

  // Lets what waits to be examined go.
  void stop() { stop_ = true; }

  // Waits until it has ended, which it does after the last worker has left; throws what ended it.
  swamp::SwampReport wait();

 private:
  PrivateFolder folder_;  // of the socket
  std::atomic<bool> stop_{false};
  std::unique_ptr<SwampHost> host_;
  swamp::SwampReport report_;
  std::exception_ptr failure_;
  std::thread thread_;
};

nlohmann::json to_json(const swamp::SwampReport& report);

// "87 models offered; the best is version 41, loss 0.0611; ..."
std::string describe(const swamp::SwampReport& report);

}  // namespace cohort::runs
