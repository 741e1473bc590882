#include "apps/bench_servers.h"

#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "apps/serving.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/job_environment.h"
#include "serving/server_process.h"

namespace cohort::apps {
namespace {

int run_child(const std::function<void(const BenchProcess::Tell&)>& body, int pipe) {
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

}  // namespace

BenchProcess::BenchProcess(const std::function<void(const Tell&)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw RunError("no pipe for a process of the benchmark");
  process_ = ::fork();
  if (process_ < 0) throw RunError("no process for the benchmark");
  if (process_ == 0) {
    ::close(ends[0]);
    ::_exit(run_child(body, ends[1]));
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

BenchProcess::~BenchProcess() {
  ::close(pipe_);
  ::waitpid(process_, nullptr, 0);
}

std::string BenchProcess::line() {
  std::string text;
  char letter = 0;
  while (::read(pipe_, &letter, 1) == 1) {
    if (letter == '\n') return text;
    text += letter;
  }
  throw RunError("a process of the benchmark ended early");
}

// Nothing is ever written to it: it ends when the last process has closed its end to write.
BenchGate::BenchGate() {
  if (::pipe(ends_) != 0) throw RunError("no pipe for the processes of the benchmark");
}

BenchGate::~BenchGate() {
  ::close(ends_[0]);
  if (ends_[1] >= 0) ::close(ends_[1]);
}

void BenchGate::pass() {
  ::close(std::exchange(ends_[1], -1));
  char nothing = 0;
  while (::read(ends_[0], &nothing, 1) < 0 && errno == EINTR) {
  }
}

BenchRoute bench_route(const std::string& transport) {
  BenchRoute route{.listen = {.host = "127.0.0.1"}};
  if (transport == "tcp") return route;
  if (transport == "tls") {
    route.credentials.token = network::make_token();
    route.credentials.always = true;
    return route;
  }
  if (transport == "unix" || transport == "shared-memory") {
    route.folder = launch::runtime_folder();
    route.shared_memory = transport == "shared-memory";
    return route;
  }
  throw ConfigError(unknown_name("transport", transport, kBenchTransports));
}

std::unique_ptr<BenchProcess> start_bench_server(const BenchRoute& route, const network::JobId& job,
                                                 int server, network::Address& address) {
  auto child = std::make_unique<BenchProcess>([&](const BenchProcess::Tell& tell) {
    serving::ServerProcessOptions options;
    options.listener.address = route.listen;
    options.listener.self = {job, network::Role::kServer, server};
    options.listener.credentials = route.credentials;
    options.listener.runtime_folder = route.folder;
    options.listener.shared_memory = route.shared_memory;
    options.server.idle_exit = std::chrono::minutes(1);
    serving::ServerProcess process(std::move(options));
    tell(process.address().text());
    process.run(std::atomic<bool>(false));
  });
  address = network::parse_address(child->line());
  return child;
}

serving::ParameterClientOptions bench_client_options(const BenchRoute& route,
                                                     const network::JobId& job,
                                                     const std::vector<network::Address>& servers,
                                                     std::int64_t elements) {
  serving::ParameterClientOptions options;
  options.servers = servers;
  options.job = job;
  options.credentials = route.credentials;
  options.runtime_folder = route.folder;
  options.shared_memory = route.shared_memory;
  const std::vector<server::ShardTensor> model = {{"values", {elements}, {0, elements}, 0}};
  options.layout =
      server::shard(model, static_cast<int>(servers.size()), server::Sharding::kSliced);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    server::JobSpec spec;
    spec.servers = static_cast<int>(servers.size());
    spec.server = static_cast<int>(server);
    spec.size = options.layout.sizes[server];
    spec.mode = server::ServerMode::kAsync;
    spec.optimizer_options.momentum = 0;
    if (spec.size > 0) spec.decay = {{{0, spec.size}, 0}};
    spec.schedule_options.lr = kBenchRate;
    options.specs.push_back(spec);
  }
  return options;
}

}  // namespace cohort::apps
