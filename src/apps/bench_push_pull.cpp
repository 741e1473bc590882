#include "apps/bench_push_pull.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/bench_servers.h"
#include "core/aligned_vector.h"
#include "core/error.h"

namespace cohort::apps {
namespace {

constexpr std::chrono::minutes kPushPullTimeout{5};
constexpr float kGradient = 0.25F;

struct PushPullBench {
  std::vector<std::string> transports = kBenchTransports;
  double megabytes = 100;
  int workers = 1;
  int servers = 1;
  int repetitions = 15;
  int round_trips = 2000;
};

// Of one worker or of all together.
struct Timings {
  std::vector<double> seconds;  // of each push-pull
  double begin = 0;             // of the first, by the clock that all processes of a host share
  double end = 0;               // of the last
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Timings, seconds, begin, end)

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// What one worker does: push-pulls of `elements` parameters, timed once all workers are warm.
Timings time_push_pulls(const serving::ParameterClientOptions& options, std::int64_t elements,
                        int repetitions, int workers, BenchGate& gate) {
  AlignedVector<float> parameters(static_cast<std::size_t>(elements));
  const AlignedVector<float> gradients(parameters.size(), kGradient);
  serving::ParameterClient client(options, {parameters, gradients, {}});
  client.start({}, deadline_in(kPushPullTimeout));
  const auto push_pull = [&] {
    client.begin_push();
    client.finish_push();
    client.wait(deadline_in(kPushPullTimeout));
  };
  const int warm_up = 2;
  for (int repetition = 0; repetition < warm_up; ++repetition) push_pull();
  gate.pass();
  Timings timings;
  timings.begin = timings.end = now();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const double start = timings.end;
    push_pull();
    timings.end = now();
    timings.seconds.push_back(timings.end - start);
  }
  client.wait_for_others();
  const float expected =
      -kBenchRate * kGradient * static_cast<float>((warm_up + repetitions) * workers);
  for (const float value : parameters) {
    if (value != expected && options.worker == 0) {
      throw RunError(fmt::format("the servers' parameters are {} instead of {}", value, expected));
    }
  }
  client.leave(membership::LeaveKind::kDone, deadline_in(kPushPullTimeout));
  return timings;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

Timings measure(const PushPullBench& bench, const std::string& transport, std::int64_t elements,
                int repetitions) {
  const BenchRoute route = bench_route(transport);
  const network::JobId job = network::random_job_id();
  std::vector<std::unique_ptr<BenchProcess>> servers;
  std::vector<network::Address> addresses(static_cast<std::size_t>(bench.servers));
  for (int server = 0; server < bench.servers; ++server) {
    servers.push_back(
        start_bench_server(route, job, server, addresses[static_cast<std::size_t>(server)]));
  }
  serving::ParameterClientOptions options = bench_client_options(route, job, addresses, elements);
  for (server::JobSpec& spec : options.specs) spec.workers = bench.workers;
  BenchGate gate;
  std::vector<std::unique_ptr<BenchProcess>> workers;
  for (int worker = 0; worker < bench.workers; ++worker) {
    workers.push_back(std::make_unique<BenchProcess>([&, worker](const BenchProcess::Tell& tell) {
      options.worker = worker;
      const auto timings = time_push_pulls(options, elements, repetitions, bench.workers, gate);
      tell(nlohmann::json(timings).dump());
    }));
  }
  gate.pass();
  Timings all;
  all.begin = std::numeric_limits<double>::max();
  for (const auto& worker : workers) {
    const auto one = nlohmann::json::parse(worker->line()).get<Timings>();
    all.seconds.insert(all.seconds.end(), one.seconds.begin(), one.seconds.end());
    all.begin = std::min(all.begin, one.begin);
    all.end = std::max(all.end, one.end);
  }
  return all;
}

void run_push_pull_bench(const PushPullBench& bench) {
  constexpr std::int64_t kSmall = 256;
  const auto elements = static_cast<std::int64_t>(bench.megabytes * 1e6 / sizeof(float));
  for (const std::string& transport : bench.transports) {
    const Timings large = measure(bench, transport, elements, bench.repetitions);
    const Timings small = measure(bench, transport, kSmall, bench.round_trips);
    const double moved = bench.megabytes / 1e3 * static_cast<double>(large.seconds.size());
    const nlohmann::json line = {{"bench", "push-pull"},
                                 {"transport", transport},
                                 {"megabytes", bench.megabytes},
                                 {"workers", bench.workers},
                                 {"servers", bench.servers},
                                 {"push_pull_ms", 1e3 * quantile(large.seconds, 0.5)},
                                 {"gb_per_s_each_way", moved / (large.end - large.begin)},
                                 {"small_bytes", kSmall * sizeof(float)},
                                 {"round_trip_us", 1e6 * quantile(small.seconds, 0.5)},
                                 {"round_trip_us_p90", 1e6 * quantile(small.seconds, 0.9)}};
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

}  // namespace cohort::apps
