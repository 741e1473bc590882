#include "dialects/dist_train.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/command.h"
#include "apps/dist_train_flags.h"
#include "apps/environment.h"
#include "apps/serving.h"
#include "apps/told_settings.h"
#include "apps/training.h"
#include "core/clock.h"
#include "core/error.h"
#include "dialects/dist_train_progress.h"
#include "dialects/native_command.h"
#include "engine/assemble.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "launch/job_environment.h"
#include "methods/settings.h"
#include "runs/run_files.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

// All variables that may concern us, by the program's own rule: those with PADDLE_ in their names.
dialects::Variables find_variables() {
  dialects::Variables variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    const bool ours = name.find("PADDLE_") != std::string::npos || name == "TRAINING_ROLE" ||
                      name == "POD_IP" || name == "FLAGS_selected_gpus" || name == "CPU_NUM";
    if (ours) variables[name] = text.substr(equals + 1);
  }
  return variables;
}

dialects::PaddleSurroundings find_surroundings(const dialects::DistTrainFlags& flags) {
  dialects::PaddleSurroundings around;
  around.variables = find_variables();
  around.gpus = engine::cuda_device_count();
  around.models = models::models().names();
  std::error_code ignored;
  around.list_files =
      fs::is_regular_file(fs::path(dialects::paddle_data_dir(flags)) / "train_list.txt", ignored);
  return around;
}

ServeRequest serve_request(const DistTrainCommand& command,
                           const dialects::DistTrainTranslation& job) {
  ServeRequest request;
  const dialects::PaddleCluster& cluster = job.cluster;
  request.listen = network::parse_address(cluster.servers[static_cast<std::size_t>(cluster.index)]);
  request.index = cluster.index;
  request.workers = cluster.trainers;
  request.job = launch::find_job_name(job.config.job);
  request.state_dir = command.state_dir;
  request.flag_names = dialects::dist_train_flag_names(job.revision);
  request.told = told_settings(command.app(), job.config, request.flag_names,
                               dialects::dist_train_server_settings(job.revision));
  request.idle_exit = std::chrono::milliseconds(static_cast<std::int64_t>(command.idle_exit * 1e3));
  return request;
}

int serve(const DistTrainCommand& command, const dialects::DistTrainTranslation& job) {
  ServeRequest request = serve_request(command, job);
  request.credentials =
      launch::find_credentials(job.config.token_file, job.config.tls_dir, job.config.insecure);
  fmt::print(stderr, "PSERVER {} of {} at {}: waiting for {} trainer{}\n", job.cluster.index,
             job.cluster.servers.size(), request.listen.text(), job.cluster.trainers,
             job.cluster.trainers == 1 ? "" : "s");
  return serve_parameters(request);
}

void explain(const DistTrainCommand& command, const dialects::DistTrainTranslation& job) {
  if (job.cluster.is_server) {
    fmt::print("{}\n",
               dialects::shell_line(serve_command(serve_request(command, job), job.config)));
    return;
  }
  std::vector<std::string> extra;
  if (!command.name.empty()) extra = {"--name", command.name};
  const std::string runs = command.runs_dir_for(job.revision);
  if (runs != "runs") extra.insert(extra.end(), {"--runs-dir", runs});
  std::vector<std::string> words = dialects::native_command(job.config, extra);
  if (job.config.engine == "tcp") {
    // What a launcher would say: the trainers meet where the first one listens.
    const network::Address first = network::parse_address(job.cluster.trainers_at.front());
    words.insert(words.begin(),
                 {fmt::format("RANK={}", job.cluster.index),
                  fmt::format("WORLD_SIZE={}", job.cluster.trainers), "MASTER_ADDR=" + first.host,
                  fmt::format("MASTER_PORT={}", first.port)});
  }
  fmt::print("{}\n", dialects::shell_line(words));
}

class DistTrainObserver final : public ConsoleObserver {
 public:
  explicit DistTrainObserver(const dialects::DistTrainTranslation& job)
      : ConsoleObserver(dialects::dist_train_flag_names(job.revision)), job_(job) {}

  // A pass ends with the data, also where --iterations is more.
  void data_opened(config::RunConfig& config, const data::DataSplits& data) override {
    if (job_.iterations == 0) return;
    const auto workers = static_cast<int>(std::max<std::int64_t>(1, config.workers));
    const std::int64_t batch = engine::batch_of_all(config, workers);
    const std::int64_t samples = data.train->size();
    config.iterations =
        job_.passes *
        dialects::pass_steps(job_.iterations, std::max<Step>(1, (samples + batch - 1) / batch));
  }

 private:
  dialects::DistTrainProgressOptions options(const config::RunConfig& config,
                                             Step steps_per_epoch) const {
    const bool together = job_.cluster.method != dialects::PaddleMethod::kServers;
    return {.revision = job_.revision,
            .passes = job_.passes,
            .steps_per_pass = dialects::pass_steps(job_.iterations, steps_per_epoch),
            .skip_batches = job_.skip_batches,
            .ranks = together ? static_cast<int>(std::max<std::int64_t>(1, config.workers)) : 1};
  }
  std::unique_ptr<engine::Progress> display(const runs::WorkerSeat& seat) override {
    if (seat.totals == nullptr) return nullptr;
    return dialects::make_dist_train_progress(
        stdout, stderr, options(seat.config, seat.steps_per_epoch),
        [this] { return seconds_between(began_, Clock::now()); });
  }
  engine::DueSteps due(Step steps_per_epoch) override {
    return {.record = dialects::dist_train_record_when(options({}, steps_per_epoch)),
            .evaluate = dialects::dist_train_evaluate_when(
                job_.first_tested, dialects::pass_steps(job_.iterations, steps_per_epoch))};
  }
  bool ends_without_summary() const override { return true; }

  const dialects::DistTrainTranslation& job_;
  Clock::time_point began_ = Clock::now();
};

runs::RunRequest run_request(const DistTrainCommand& command,
                             const dialects::DistTrainTranslation& job) {
  runs::RunRequest request;
  request.name = command.name;
  request.runs_dir = command.runs_dir_for(job.revision);
  if (!command.flags.checkpoint.empty()) {
    request.resume = runs::own_run(command.flags.checkpoint, job.config.rank).string();
  }
  request.place.addresses = job.cluster.trainers_at;
  request.place.process = job.cluster.index;
  return request;
}

// The same flags again, but for what may change when a run goes on.
void check_resumable(const std::string& run, const config::RunConfig& config) {
  if (!fs::exists(fs::path(run) / "run.json")) return;  // train() says so, and where it looked
  for (const runs::ChangedSetting& each :
       runs::forbidden_changes(engine::read_run_config(run), config)) {
    throw ConfigError(fmt::format(
        "--checkpoint {}: that run has --{} {}, these flags say {}; give it the flags it was begun "
        "with",
        run, each.name, each.was, each.now));
  }
}

int run_dist_train(const DistTrainCommand& command, const std::vector<std::string>& arguments) {
  const dialects::DistTrainFlags flags = command.finished_flags();
  dialects::DistTrainTranslation job = dialects::translate(flags, find_surroundings(flags));
  // The program has no flag for it.
  const auto is_given = [](const std::string& setting) { return setting != "momentum"; };
  if (const auto chosen = methods::adapt_to_method(job.config, is_given); !chosen.note.empty()) {
    job.notes.push_back(chosen.note);
  }
  if (!flags.data_dir) job.config.data_dir = default_data_dir(job.config.data_dir);
  if (!command.explain) {
    for (const std::string& line : job.opening) fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  for (const std::string& line : job.notes) fmt::print(stderr, "{}\n", line);
  if (command.explain) {
    explain(command, job);
    return 0;
  }
  if (job.cluster.is_server) return serve(command, job);
  const runs::RunRequest request = run_request(command, job);
  if (!request.resume.empty()) check_resumable(request.resume, job.config);
  DistTrainObserver observer(job);
  return train(job.config, request, observer, arguments);
}

}  // namespace

void add_dist_train(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "dist_train",
      "Train as PaddlePaddle's distributed image classification does, with its flags and output");
  auto parsed = std::make_shared<DistTrainCommand>(*command);
  command->callback([parsed, &invocation] {
    invocation.exit_status = run_dist_train(*parsed, invocation.arguments);
  });
}

}  // namespace cohort::apps
