#include "apps/bench_straggler.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "apps/bench_servers.h"
#include "core/aligned_vector.h"

namespace cohort::apps {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::chrono::minutes kStragglerTimeout{5};

struct StragglerBench {
  std::vector<std::string> modes = {"async", "ssp", "sync"};
  int workers = 4;
  double slower = 10;
  double step_ms = 5;
  double seconds = 3;
  double megabytes = 1;
  int staleness = 8;
};

// Steps a second of one worker whose computing is a sleep, as on a device of its own.
double work(const serving::ParameterClientOptions& options, std::int64_t elements,
            Milliseconds step, double seconds) {
  AlignedVector<float> parameters(static_cast<std::size_t>(elements));
  const AlignedVector<float> gradients(parameters.size(), 1e-3F);
  serving::ParameterClient client(options, {parameters, gradients, {}});
  client.start({}, deadline_in(kStragglerTimeout));
  const Clock::time_point start = Clock::now();
  int steps = 0;
  while (seconds_between(start, Clock::now()) < seconds) {
    std::this_thread::sleep_for(step);
    client.begin_push();
    client.finish_push();
    client.wait(deadline_in(kStragglerTimeout));
    ++steps;
  }
  const double rate = steps / seconds_between(start, Clock::now());
  client.leave(membership::LeaveKind::kDone, deadline_in(kStragglerTimeout));
  return rate;
}

// The mean over the workers that are not slow.
double rate_of_the_others(const StragglerBench& bench, server::ServerMode mode, double slower) {
  const BenchRoute route = bench_route("shared-memory");
  const network::JobId job = network::random_job_id();
  const auto elements = static_cast<std::int64_t>(bench.megabytes * 1e6 / sizeof(float));
  std::vector<network::Address> address(1);
  const auto server = start_bench_server(route, job, 0, address[0]);
  serving::ParameterClientOptions options = bench_client_options(route, job, address, elements);
  options.specs[0].workers = bench.workers;
  options.specs[0].mode = mode;
  options.specs[0].staleness = bench.staleness;
  std::vector<std::unique_ptr<BenchProcess>> workers;
  for (int worker = 0; worker < bench.workers; ++worker) {
    workers.push_back(std::make_unique<BenchProcess>([&, worker](const BenchProcess::Tell& tell) {
      options.worker = worker;
      const double factor = worker == bench.workers - 1 ? slower : 1;
      const double rate =
          work(options, elements, Milliseconds(bench.step_ms * factor), bench.seconds);
      tell(std::to_string(rate));
    }));
  }
  double sum = 0;
  for (int worker = 0; worker < bench.workers - 1; ++worker) {
    sum += std::stod(workers[static_cast<std::size_t>(worker)]->line());
  }
  return sum / (bench.workers - 1);
}

void run_straggler_bench(const StragglerBench& bench) {
  for (const std::string& name : bench.modes) {
    const server::ServerMode mode = server::parse_server_mode(name);
    const double without = rate_of_the_others(bench, mode, 1);
    const double with = rate_of_the_others(bench, mode, bench.slower);
    const nlohmann::json line = {{"bench", "straggler"},
                                 {"mode", name},
                                 {"workers", bench.workers},
                                 {"slower", bench.slower},
                                 {"step_ms", bench.step_ms},
                                 {"steps_per_s_of_the_others", with},
                                 {"steps_per_s_without_a_straggler", without},
                                 {"ratio", with / without}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
}

}  // namespace

void add_straggler_bench(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "straggler", "Steps of workers at a parameter server with and without a slow one among them");
  auto parsed = std::make_shared<StragglerBench>();
  command->add_option("--modes", parsed->modes, "async, ssp, sync")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--workers", parsed->workers, "processes, the last of them slow")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command->add_option("--slower", parsed->slower, "how many times as long the slow one's steps are")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  command->add_option("--step-ms", parsed->step_ms, "a step's computing, spent asleep")
      ->check(CLI::Range(0.01, 1e4))
      ->capture_default_str();
  command->add_option("--seconds", parsed->seconds, "each run")
      ->check(CLI::Range(0.1, 1e4))
      ->capture_default_str();
  command->add_option("--megabytes", parsed->megabytes, "size of the model")
      ->check(CLI::Range(0.001, 1e5))
      ->capture_default_str();
  command->add_option("--staleness", parsed->staleness, "bound of ssp")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->callback([parsed] { run_straggler_bench(*parsed); });
}

}  // namespace cohort::apps
