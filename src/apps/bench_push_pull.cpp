#include "apps/bench_push_pull.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench_servers.h"
#include "core/aligned_vector.h"
#include "core/error.h"

namespace cohort {
namespace {

constexpr std::chrono::minutes kPatience{5};
constexpr float kGradient = 0.25F;

struct PushPullBench {
  std::vector<std::string> transports = kBenchTransports;
  double megabytes = 100;
  int workers = 1;
  int servers = 1;
  int repetitions = 15;
  int round_trips = 2000;
};

// One worker: seconds of each push-pull of `elements` parameters.
std::vector<double> time_push_pulls(const ParameterClientOptions& options, std::int64_t elements,
                                    int repetitions, int workers) {
  AlignedVector<float> parameters(static_cast<std::size_t>(elements));
  const AlignedVector<float> gradients(parameters.size(), kGradient);
  ParameterClient client(options, {parameters, gradients, {}});
  client.start(0, deadline_in(kPatience));
  std::vector<double> seconds;
  const int warm_up = 2;
  for (int repetition = 0; repetition < warm_up + repetitions; ++repetition) {
    const Clock::time_point start = Clock::now();
    client.begin_push();
    client.finish_push();
    client.wait(deadline_in(kPatience));
    if (repetition >= warm_up) seconds.push_back(seconds_between(start, Clock::now()));
  }
  client.wait_for_others();
  const float expected =
      -kBenchRate * kGradient * static_cast<float>((warm_up + repetitions) * workers);
  for (const float value : parameters) {
    if (value != expected && options.worker == 0) {
      throw RunError(fmt::format("the servers' parameters are {} instead of {}", value, expected));
    }
  }
  client.leave(deadline_in(kPatience));
  return seconds;
}

struct Figures {
  std::vector<double> seconds;  // of all push-pulls of all workers, sorted
  double wall = 0;              // from the first to the last worker's end, of its timed ones

  double quantile(double share) const {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  }
};

Figures measure(const PushPullBench& bench, const std::string& transport, std::int64_t elements,
                int repetitions) {
  const BenchRoute route = bench_route(transport);
  const JobId job = random_job_id();
  std::vector<std::unique_ptr<BenchProcess>> servers;
  std::vector<Address> addresses(static_cast<std::size_t>(bench.servers));
  for (int server = 0; server < bench.servers; ++server) {
    servers.push_back(
        start_bench_server(route, job, server, addresses[static_cast<std::size_t>(server)]));
  }
  ParameterClientOptions options = bench_client_options(route, job, addresses, elements);
  for (JobSpec& spec : options.specs) spec.workers = bench.workers;
  std::vector<std::unique_ptr<BenchProcess>> workers;
  for (int worker = 0; worker < bench.workers; ++worker) {
    workers.push_back(std::make_unique<BenchProcess>([&, worker](const BenchProcess::Tell& tell) {
      options.worker = worker;
      const auto seconds = time_push_pulls(options, elements, repetitions, bench.workers);
      tell(nlohmann::json(seconds).dump());
    }));
  }
  Figures figures;
  for (const auto& worker : workers) {
    const auto seconds = nlohmann::json::parse(worker->line()).get<std::vector<double>>();
    double sum = 0;
    for (const double each : seconds) sum += each;
    figures.wall = std::max(figures.wall, sum);
    figures.seconds.insert(figures.seconds.end(), seconds.begin(), seconds.end());
  }
  std::sort(figures.seconds.begin(), figures.seconds.end());
  return figures;
}

void run_push_pull_bench(const PushPullBench& bench) {
  constexpr std::int64_t kSmall = 256;
  const auto elements = static_cast<std::int64_t>(bench.megabytes * 1e6 / sizeof(float));
  for (const std::string& transport : bench.transports) {
    const Figures large = measure(bench, transport, elements, bench.repetitions);
    const Figures small = measure(bench, transport, kSmall, bench.round_trips);
    const double gigabytes = bench.megabytes / 1e3;
    // Of one worker the median, of several together what all moved in the slowest one's time.
    const double rate = bench.workers == 1
                            ? gigabytes / large.quantile(0.5)
                            : gigabytes * bench.workers * bench.repetitions / large.wall;
    const nlohmann::json line = {{"bench", "push-pull"},
                                 {"transport", transport},
                                 {"megabytes", bench.megabytes},
                                 {"workers", bench.workers},
                                 {"servers", bench.servers},
                                 {"push_pull_ms", 1e3 * large.quantile(0.5)},
                                 {"gb_per_s_each_way", rate},
                                 {"small_bytes", kSmall * sizeof(float)},
                                 {"round_trip_us", 1e6 * small.quantile(0.5)},
                                 {"round_trip_us_p90", 1e6 * small.quantile(0.9)}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
}

}  // namespace

void add_push_pull_bench(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "push-pull", "Gradients to parameter servers and parameters back, between processes");
  auto parsed = std::make_shared<PushPullBench>();
  command->add_option("--transports", parsed->transports, "tcp, tls, unix, shared-memory")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--megabytes", parsed->megabytes, "size of the model")
      ->check(CLI::Range(0.001, 1e5))
      ->capture_default_str();
  command->add_option("--workers", parsed->workers, "processes that push and pull")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--servers", parsed->servers, "processes that share the model")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--repetitions", parsed->repetitions, "timed push-pulls of the whole model")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--round-trips", parsed->round_trips, "timed push-pulls of 1 KB")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  command->callback([parsed] { run_push_pull_bench(*parsed); });
}

}  // namespace cohort
