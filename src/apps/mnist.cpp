#include "dialects/mnist.h"

#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <memory>

#include "apps/command.h"
#include "apps/environment.h"
#include "apps/serving.h"
#include "apps/told_settings.h"
#include "apps/training.h"
#include "core/clock.h"
#include "core/error.h"
#include "dialects/mnist_progress.h"
#include "dialects/native_command.h"
#include "launch/job_environment.h"

namespace cohort::apps {
namespace {

constexpr const char* kMnistExample =
    R"(Example, as the original's guide has it but for the program's name:

    cohort mnist --ps_hosts=10.10.10.94:2222 --worker_hosts=10.10.10.191:2222 \
                 --job_name=ps --task_index=0        on 10.10.10.94
    cohort mnist --ps_hosts=10.10.10.94:2222 --worker_hosts=10.10.10.191:2222 \
                 --job_name=worker --task_index=0    on 10.10.10.191

Between hosts the processes need a secret in common: `cohort token --file job.token`, and
--token_file=job.token for each. On one host (127.0.0.1) they do not.)";

struct MnistCommand {
  explicit MnistCommand(CLI::App& app) : app_(app) {
    add_cluster(app);
    add_training(app);
    add_network(app);
  }

  dialects::MnistFlags flags;
  CLI::Option* data_dir = nullptr;
  std::string logs_path = "/tmp/mnist/1";
  std::string name;
  std::string state_dir;
  double idle_exit = 600;
  bool explain = false;

  const CLI::App& app() const { return app_; }

 private:
  void add_cluster(CLI::App& app) {
    app.add_option("--ps_hosts", flags.ps_hosts, "parameter servers: host:port,host:port");
    app.add_option("--worker_hosts", flags.worker_hosts, "workers: host:port,host:port");
    app.add_option("--job_name", flags.job_name, "what this process is: ps or worker");
    app.add_option("--task_index", flags.task_index, "its place in the list of its job, from 0");
    app.add_flag("--sync", flags.sync,
                 "synchronous replicas: one update of all workers' mean gradient");
    app.add_flag("--local", flags.local, "the same steps in this process alone, without servers")
        ->group("Ours");
  }

  void add_training(CLI::App& app) {
    data_dir = app.add_option("--data_dir", flags.data_dir,
                              "where MNIST is; the usual places if not given and not there")
                   ->capture_default_str();
    app.add_option("--logs_path", logs_path, "where the run directory is made")
        ->capture_default_str();
    app.add_option("--batch_size", flags.batch_size, "images a step of one worker")
        ->capture_default_str();
    app.add_option("--learning_rate", flags.learning_rate, "of plain SGD")->capture_default_str();
    app.add_option("--training_epochs", flags.training_epochs,
                   "times each worker goes through all training images")
        ->capture_default_str();
    app.add_option("--validation_size", flags.validation_size,
                   "training images left out, from the first on")
        ->capture_default_str();
    app.add_option("--seed", flags.seed, "initial weights and order follow from it")
        ->capture_default_str();
    app.add_option("--name", name, "folder of this run below --logs_path")->group("Ours");
    app.add_flag("--explain", explain, "print the same as a native command, and end")
        ->group("Ours");
  }

  void add_network(CLI::App& app) {
    const char* group = "Ours";
    app.add_option("--state_dir,--state-dir", state_dir,
                   "ps: folder for snapshots: one started again with it goes on")
        ->group(group);
    app.add_option("--idle_exit,--idle-exit", idle_exit,
                   "ps: seconds without any worker until it ends")
        ->check(CLI::Range(0.1, 1e9))
        ->capture_default_str()
        ->group(group);
    app.add_option("--peer_timeout,--peer-timeout", flags.peer_timeout,
                   "worker: seconds to wait for a server that does not come")
        ->capture_default_str()
        ->group(group);
    app.add_option("--job", flags.job, "name that all processes of the job know")->group(group);
    app.add_option("--token_file,--token-file", flags.token_file,
                   "the job's secret, made by `cohort token`; or set COHORT_TOKEN")
        ->group(group);
    app.add_option("--tls_dir,--tls-dir", flags.tls_dir,
                   "authority.pem, certificate.pem and key.pem of this process")
        ->group(group);
    app.add_flag("--insecure", flags.insecure,
                 "no encryption, also across the network: for private networks alone")
        ->group(group);
  }

  CLI::App& app_;
};

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string counted_workers(int workers) {
  return workers == 1 ? "1 worker" : fmt::format("{} workers", workers);
}

ServeRequest serve_request(const MnistCommand& command,
                           const dialects::MnistTranslation& translation) {
  ServeRequest request;
  request.listen =
      network::parse_address(translation.servers[static_cast<std::size_t>(translation.index)]);
  request.index = translation.index;
  request.workers = translation.workers;
  request.job = launch::find_job_name(translation.config.job);
  request.state_dir = command.state_dir;
  request.flag_names = dialects::mnist_flag_names();
  request.told = told_settings(command.app(), translation.config, request.flag_names,
                               dialects::mnist_server_settings());
  request.idle_exit = std::chrono::milliseconds(static_cast<std::int64_t>(command.idle_exit * 1e3));
  return request;
}

void explain(const MnistCommand& command, const dialects::MnistTranslation& translation) {
  std::vector<std::string> words;
  if (translation.role == dialects::MnistRole::kServer) {
    words = serve_command(serve_request(command, translation), translation.config);
  } else {
    std::vector<std::string> extra = {"--runs-dir", command.logs_path};
    if (!command.name.empty()) extra.insert(extra.end(), {"--name", command.name});
    words = dialects::native_command(translation.config, extra);
  }
  fmt::print("{}\n", dialects::shell_line(words));
}

int serve(const MnistCommand& command, const dialects::MnistTranslation& translation) {
  ServeRequest request = serve_request(command, translation);
  const config::RunConfig& config = translation.config;
  request.credentials =
      launch::find_credentials(config.token_file, config.tls_dir, config.insecure);
  fmt::print(stderr, "ps {} of {} at {}: waiting for {}\n", translation.index,
             translation.servers.size(), request.listen.text(),
             counted_workers(translation.workers));
  return serve_parameters(request);
}

class MnistObserver final : public ConsoleObserver {
 public:
  MnistObserver() : ConsoleObserver(dialects::mnist_flag_names()) {}

 private:
  std::unique_ptr<engine::Progress> display(const runs::WorkerSeat& seat) override {
    if (seat.totals == nullptr) return nullptr;
    return dialects::make_mnist_progress(stdout, stderr,
                                         [this] { return seconds_between(began_, Clock::now()); });
  }
  engine::DueSteps due(Step steps_per_epoch) override {
    return {.record = dialects::mnist_record_when(steps_per_epoch)};
  }
  bool ends_without_summary() const override { return true; }

  Clock::time_point began_ = Clock::now();
};

int run_mnist(const MnistCommand& command, const std::vector<std::string>& arguments) {
  dialects::MnistFlags flags = command.flags;
  if (command.data_dir->empty()) flags.data_dir = default_data_dir(flags.data_dir);
  const dialects::MnistTranslation translation = dialects::translate(flags, variable("TF_CONFIG"));
  for (const std::string& line : translation.notes) fmt::print(stderr, "{}\n", line);
  if (command.explain) {
    explain(command, translation);
    return 0;
  }
  if (translation.role == dialects::MnistRole::kServer) return serve(command, translation);
  runs::RunRequest request;
  request.runs_dir = command.logs_path;
  request.name = command.name;
  request.wait_for_others = false;
  MnistObserver observer;
  return train(translation.config, request, observer, arguments);
}

}  // namespace

void add_mnist(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "mnist", "Train as TensorFlow's ps/worker MNIST example does, with its flags and its output");
  command->footer(kMnistExample);
  auto parsed = std::make_shared<MnistCommand>(*command);
  command->callback(
      [parsed, &invocation] { invocation.exit_status = run_mnist(*parsed, invocation.arguments); });
}

}  // namespace cohort::apps
