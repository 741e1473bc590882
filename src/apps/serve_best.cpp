#include <spdlog/fmt/fmt.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/environment.h"
#include "apps/serving.h"
#include "core/error.h"
#include "core/repeat_limiter.h"
#include "engine/run_directory.h"
#include "launch/job_environment.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "runs/job_choice.h"
#include "runs/run_files.h"
#include "runs/swamp_host.h"
#include "storage/worker_folder.h"

namespace cohort::apps {
namespace {

constexpr const char* kServeBestExample =
    R"(Example:

    cohort serve-best --method swamp --data mnist --workers 2 --listen 127.0.0.1:7000 &
    cohort train --method swamp --data mnist --workers 2 --servers 127.0.0.1:7000 --rank 0 &
    cohort train --method swamp --data mnist --workers 2 --servers 127.0.0.1:7000 --rank 1

The server needs the model, the data and the settings of the workers, since it evaluates their
models: give it the same flags. It ends when they are done.)";

struct ServeBestCommand {
  explicit ServeBestCommand(CLI::App& command) : flags(command) {
    command.add_option("--listen", listen, "host:port to listen at; port 0: any free one")
        ->capture_default_str();
    command.add_option("--state-dir", state_dir,
                       "folder for the best model: a server started again with it goes on");
    command.add_option("--idle-exit", idle_exit, "seconds without any worker until it ends")
        ->check(CLI::Range(0.1, 1e9))
        ->capture_default_str();
    command.add_option("--index", index, "this server's number: there is one")
        ->check(CLI::Range(0, 0))
        ->group("");
    command.add_option("--name", name, "with --dump-every: folder for accepted models, -server");
    command.add_option("--runs-dir", runs_dir, "where it is made")->capture_default_str();
    command.add_flag("--json", json, "the summary as JSON on standard output");
    command.add_flag("--quiet", quiet, "nothing but warnings");
  }

  ConfigFlags flags;
  std::string listen = "127.0.0.1:0";
  std::string state_dir;
  std::string name;
  std::string runs_dir = "runs";
  int index = 0;
  double idle_exit = 600;
  bool json = false;
  bool quiet = false;
};

// Where accepted models are dumped; a server that is started again goes on there.
engine::RunDirectory open_server_run(const ServeBestCommand& command,
                                     const config::RunConfig& config,
                                     const std::vector<std::string>& arguments) {
  const std::string name =
      command.name.empty() ? "" : storage::server_folder(command.name).string();
  const std::filesystem::path path = std::filesystem::path(command.runs_dir) / name;
  if (!name.empty() && std::filesystem::exists(path / "run.json") && !command.state_dir.empty()) {
    return engine::RunDirectory::open(path);
  }
  return engine::RunDirectory::create(command.runs_dir, name, storage::kUnnamedServer,
                                      {{"config", methods::to_json(config)},
                                       {"unused", methods::unused_settings(config)},
                                       {"job", runs::job_identity(config)},
                                       {"command", arguments},
                                       {"resumed_by", nlohmann::json::array()},
                                       {"host", runs::describe_host()}});
}

// Until the last model that a server before this one dumped.
double seconds_so_far(const std::filesystem::path& run) {
  std::int64_t seconds = 0;
  for (const storage::FoundDump& dump : storage::find_dumps(run).dumps)
    seconds = std::max(seconds, dump.name.second);
  return static_cast<double>(seconds);
}

// What decides how models are judged, so that the workers must have it, too.
nlohmann::json settings_of_judging(const config::RunConfig& config) {
  const nlohmann::json all = methods::to_json(config);
  nlohmann::json told = nlohmann::json::object();
  for (const char* name :
       {"model", "depth", "widen", "growth", "data", "image-size", "synthetic-shape",
        "synthetic-classes", "train-size", "test-size", "seed", "swamp-server", "swamp-hysteresis",
        "validation-size", "check-samples"}) {
    told[name] = all.at(name);
  }
  if (config.workers > 0) told["workers"] = config.workers;
  return told;
}

int serve_best(const ServeBestCommand& command, const std::vector<std::string>& arguments) {
  config::RunConfig config = command.flags.resolve();
  if (methods::traits_of(config.method).servers != methods::MethodTraits::Servers::kBestModel) {
    throw ConfigError("cohort serve-best serves --method swamp: give it the workers' flags");
  }
  methods::check_config(config);
  runs::check_names(config);
  std::optional<engine::RunDirectory> run;
  std::unique_ptr<storage::DumpWriter> dumps;
  double earlier = 0;
  if (config.dump_every > 0) {
    run.emplace(open_server_run(command, config, arguments));
    earlier = seconds_so_far(run->path());
    storage::DumpWriterOptions options;
    options.root = run->path() / storage::kDumpFolder;
    options.earlier_seconds = earlier;
    options.keep = config.keep_dumps;
    options.drop_when_slow = config.dump_drop;
    options.note = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    dumps = std::make_unique<storage::DumpWriter>(std::move(options));
  }
  runs::SwampHostOptions options;
  options.config = config;
  options.data_search = data_search_path();
  options.dumps = dumps.get();
  options.earlier_seconds = earlier;
  if (run) options.metrics = &run->metrics();
  swamp::SwampServerOptions& server = options.server;
  server.listener.address = network::parse_address(command.listen);
  server.listener.self = {network::job_id_of(launch::find_job_name(config.job)),
                          network::Role::kServer, 0};
  server.listener.credentials =
      launch::find_credentials(config.token_file, config.tls_dir, config.insecure);
  server.listener.runtime_folder = launch::runtime_folder();
  server.state_dir = command.state_dir;
  server.told = settings_of_judging(config).dump();
  server.workers = static_cast<int>(config.workers);
  server.idle_exit = std::chrono::milliseconds(static_cast<std::int64_t>(command.idle_exit * 1e3));
  server.log = limit_repeats([&](const std::string& line) {
    if (!command.quiet) fmt::print(stderr, "server: {}\n", line);
  });
  runs::SwampHost host(std::move(options));
  fmt::print(stderr, "listening {}\n", host.address().text());
  watch_signals();
  const swamp::SwampReport report = host.run(stop_requested());
  if (dumps) dumps->finish();
  if (run) run->write_summary({{"reason", "finished"}, {"swamp", runs::to_json(report)}});
  if (!command.quiet) {
    fmt::print(stderr, "server: {}\nserver: {}\n", report.reason, runs::describe(report));
  }
  if (command.json) fmt::print("{}\n", runs::to_json(report).dump());
  return stop_requested() ? 130 : 0;
}

}  // namespace

void add_serve_best(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "serve-best", "Be the best-model server of --method swamp for workers elsewhere");
  command->footer(kServeBestExample);
  auto parsed = std::make_shared<ServeBestCommand>(*command);
  command->callback([parsed, &invocation] {
    invocation.exit_status = serve_best(*parsed, invocation.arguments);
  });
}

}  // namespace cohort::apps
