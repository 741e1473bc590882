#include "apps/bench_push_pull.h"

#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/serving.h"
#include "core/aligned_vector.h"
#include "core/error.h"
#include "core/text.h"
#include "serving/parameter_client.h"
#include "serving/server_process.h"

namespace cohort {
namespace {

constexpr std::chrono::minutes kPatience{5};
constexpr float kRate = 0.5F;
constexpr float kGradient = 0.25F;

const std::vector<std::string> kTransports = {"tcp", "tls", "unix", "shared-memory"};

struct PushPullBench {
  std::vector<std::string> transports = kTransports;
  double megabytes = 100;
  int workers = 1;
  int servers = 1;
  int repetitions = 15;
  int round_trips = 2000;
};

// A child process and the pipe through which it tells what it has found.
class Child {
 public:
  template <class Body>
  explicit Child(const Body& body) {
    int ends[2];
    if (::pipe(ends) != 0) throw RunError("no pipe for a process of the benchmark");
    process_ = ::fork();
    if (process_ < 0) throw RunError("no process for the benchmark");
    if (process_ == 0) {
      ::close(ends[0]);
      ::_exit(run(body, ends[1]));
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(pipe_);
    ::waitpid(process_, nullptr, 0);
  }

  // The next line it wrote. Throws RunError when it ended instead.
  std::string line() {
    std::string text;
    char letter = 0;
    while (::read(pipe_, &letter, 1) == 1) {
      if (letter == '\n') return text;
      text += letter;
    }
    throw RunError("a process of the benchmark ended early");
  }

 private:
  template <class Body>
  static int run(const Body& body, int pipe) {
    try {
      body([pipe](const std::string& text) {
        const std::string line = text + "\n";
        static_cast<void>(!::write(pipe, line.data(), line.size()));
      });
      return 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "cohort: {}\n", error.what());
      return 1;
    }
  }

  pid_t process_ = -1;
  int pipe_ = -1;
};

struct Route {
  Address listen;
  Credentials credentials = {};
  std::string folder = {};  // for Unix sockets beside a port
  bool shared_memory = false;
};

Route route_of(const std::string& transport) {
  Route route{.listen = {.host = "127.0.0.1"}};
  if (transport == "tcp") return route;
  if (transport == "tls") {
    route.credentials.token = make_token();
    route.credentials.always = true;
    return route;
  }
  if (transport == "unix" || transport == "shared-memory") {
    route.folder = runtime_folder();
    route.shared_memory = transport == "shared-memory";
    return route;
  }
  throw ConfigError(unknown_name("transport", transport, kTransports));
}

std::unique_ptr<Child> start_server(const Route& route, const JobId& job, int server,
                                    Address& address) {
  auto child = std::make_unique<Child>([&](const auto& tell) {
    ServerProcessOptions options;
    options.listener.address = route.listen;
    options.listener.self = {job, Role::kServer, server};
    options.listener.credentials = route.credentials;
    options.listener.runtime_folder = route.folder;
    options.listener.shared_memory = route.shared_memory;
    options.server.idle_exit = std::chrono::minutes(1);
    ServerProcess process(std::move(options));
    tell(process.address().text());
    process.run(std::atomic<bool>(false));
  });
  address = parse_address(child->line());
  return child;
}

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
  const float expected = -kRate * kGradient * static_cast<float>((warm_up + repetitions) * workers);
  for (const float value : parameters) {
    if (value != expected && options.worker == 0) {
      throw RunError(fmt::format("the servers' parameters are {} instead of {}", value, expected));
    }
  }
  client.leave(deadline_in(kPatience));
  return seconds;
}

ParameterClientOptions client_options(const Route& route, const JobId& job,
                                      const std::vector<Address>& servers, std::int64_t elements) {
  ParameterClientOptions options;
  options.servers = servers;
  options.job = job;
  options.credentials = route.credentials;
  options.runtime_folder = route.folder;
  options.shared_memory = route.shared_memory;
  const std::vector<ShardTensor> model = {{"values", {elements}, {0, elements}, 0}};
  options.layout = shard(model, static_cast<int>(servers.size()), Sharding::kSliced);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    JobSpec spec;
    spec.servers = static_cast<int>(servers.size());
    spec.server = static_cast<int>(server);
    spec.size = options.layout.sizes[server];
    spec.mode = ServerMode::kAsync;
    spec.optimizer_options.momentum = 0;
    if (spec.size > 0) spec.decay = {{{0, spec.size}, 0}};
    spec.schedule_options.lr = kRate;
    options.specs.push_back(spec);
  }
  return options;
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
  const Route route = route_of(transport);
  const JobId job = random_job_id();
  std::vector<std::unique_ptr<Child>> servers;
  std::vector<Address> addresses(static_cast<std::size_t>(bench.servers));
  for (int server = 0; server < bench.servers; ++server) {
    servers.push_back(
        start_server(route, job, server, addresses[static_cast<std::size_t>(server)]));
  }
  ParameterClientOptions options = client_options(route, job, addresses, elements);
  for (JobSpec& spec : options.specs) spec.workers = bench.workers;
  std::vector<std::unique_ptr<Child>> workers;
  for (int worker = 0; worker < bench.workers; ++worker) {
    workers.push_back(std::make_unique<Child>([&, worker](const auto& tell) {
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
