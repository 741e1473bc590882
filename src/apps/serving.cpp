#include "apps/serving.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/environment.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "core/repeat_limiter.h"
#include "core/text.h"
#include "launch/job_environment.h"
#include "serving/server_process.h"
#include "storage/file.h"

namespace cohort::apps {
namespace {

nlohmann::json to_json(const serving::ServerReport& report, int index) {
  const server::ServerCounters& counters = report.counters;
  nlohmann::json staleness = nlohmann::json::object();
  for (const auto& [steps, pushes] : counters.staleness) staleness[std::to_string(steps)] = pushes;
  return {{"server", index},
          {"reason", report.reason},
          {"updates", counters.updates},
          {"speculative", counters.speculative},
          {"pushes", counters.pushes},
          {"duplicates", counters.duplicates},
          {"dropped", counters.dropped},
          {"rejected", counters.rejected},
          {"fenced", counters.fenced},
          {"evictions", counters.evictions},
          {"lost", counters.lost},
          {"staleness", staleness},
          {"refused_connections", report.refusals},
          {"bytes_sent", report.bytes_sent},
          {"bytes_received", report.bytes_received}};
}

void print_report(const serving::ServerReport& report, int index) {
  const server::ServerCounters& counters = report.counters;
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  for (const auto& [steps, pushes] : counters.staleness) {
    sum += steps * pushes;
    most = std::max(most, steps);
  }
  fmt::print(stderr, "server {}: {}\n", index, report.reason);
  fmt::print(
      stderr, "server {}: {} updates from {} gradients, staleness {:.2f} on average, {} at most\n",
      index, with_commas(static_cast<std::int64_t>(counters.updates)),
      with_commas(static_cast<std::int64_t>(counters.pushes)),
      counters.pushes == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(counters.pushes),
      most);
  const auto unusual = [&](std::uint64_t count, const char* what) {
    if (count > 0) fmt::print(stderr, "server {}: {} {}\n", index, count, what);
  };
  unusual(counters.evictions, "workers given up (some may have come back)");
  unusual(counters.dropped, "gradients came too late for their round");
  unusual(counters.rejected, "gradients refused: not finite");
  unusual(counters.fenced, "frames of workers that had been given up refused");
  unusual(counters.duplicates, "gradients sent twice, counted once");
  unusual(counters.lost, "acknowledged gradients lost: their worker died with the server");
  for (const auto& [reason, count] : report.refusals) {
    fmt::print(stderr, "server {}: {} connections refused: {}\n", index, count, reason);
  }
}

}  // namespace

std::vector<std::string> serve_command(const ServeRequest& request,
                                       const config::RunConfig& config) {
  std::vector<std::string> words = {"cohort",    "serve-parameters",
                                    "--listen",  request.listen.text(),
                                    "--index",   std::to_string(request.index),
                                    "--workers", std::to_string(request.workers)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  add("--job", request.job == ServeRequest{}.job ? "" : request.job);
  add("--state-dir", request.state_dir.string());
  const auto seconds = std::chrono::duration<double>(request.idle_exit).count();
  add("--idle-exit",
      request.idle_exit == ServeRequest{}.idle_exit ? "" : fmt::format("{}", seconds));
  add("--token-file", config.token_file);
  add("--tls-dir", config.tls_dir);
  if (config.insecure) words.push_back("--insecure");
  return words;
}

int serve_parameters(const ServeRequest& request) {
  serving::ServerProcessOptions options;
  options.listener.address = request.listen;
  options.listener.self = {network::job_id_of(request.job), network::Role::kServer, request.index};
  options.listener.credentials = request.credentials;
  options.listener.runtime_folder = launch::runtime_folder();
  options.server.idle_exit = request.idle_exit;
  nlohmann::json told = request.told;
  if (request.workers > 0) told["workers"] = request.workers;
  options.server.told = told.dump();
  // Another one in every process, so that workers notice a server that lost its state.
  std::memcpy(&options.server.seed, network::random_job_id().data(), sizeof options.server.seed);
  options.state_dir = request.state_dir;
  options.workers = request.workers;
  options.server.log = limit_repeats([&](const std::string& line) {
    if (request.quiet) return;
    fmt::print(stderr, "server {}: {}\n", request.index,
               dialects::in_words_of(request.flag_names, line));
  });
  const auto begin = [&] {
    try {
      return serving::ServerProcess(std::move(options));
    } catch (const ConfigError& error) {
      throw ConfigError(dialects::in_words_of(request.flag_names, error.what()));
    }
  };
  serving::ServerProcess server = begin();
  fmt::print(stderr, "listening {}\n", server.address().text());
  watch_signals();
  const serving::ServerReport report = server.run(stop_requested());
  if (request.json) fmt::print("{}\n", to_json(report, request.index).dump());
  if (!request.quiet) print_report(report, request.index);
  if (stop_requested()) return kExitInterrupted;
  return report.well ? 0 : 1;
}

}  // namespace cohort::apps
