#include "dialects/choco.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "apps/announcements.h"
#include "apps/checkpoint_choice.h"
#include "apps/command.h"
#include "apps/environment.h"
#include "apps/launch.h"
#include "apps/one_evaluation.h"
#include "apps/training.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "dialects/choco_progress.h"
#include "dialects/flag_names.h"
#include "dialects/native_command.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "launch/environment.h"
#include "launch/job.h"
#include "launch/job_environment.h"
#include "methods/settings.h"
#include "metrics/json_lines_sink.h"
#include "runs/run_files.h"
#include "storage/file.h"
#include "topology/registry.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxText = 1ULL << 30;

constexpr const char* kChocoExample = R"(Example, that of the original's guide with fewer epochs:

  cohort choco --arch resnet20 --optimizer parallel_choco --experiment demo --data cifar10 \
      --batch_size 128 --base_batch_size 64 --num_epochs 3 --partition_data random \
      --reshuffle_per_epoch True --n_mpi_process 16 --lr 0.1 --lr_scaleup True --lr_warmup True \
      --lr_scheduler MultiStepLR --lr_decay 0.1 --lr_milestones 150,225 --graph_topology ring \
      --comm_op sign --consensus_stepsize 0.5 --weight_decay 1e-4 --use_nesterov True

With --hostfile or --backend mpi the workers are processes that mpirun starts; otherwise threads.
batch_size is that of one worker. docs/choco.md has the table of all flags.)";

class ChocoCommand {
 public:
  explicit ChocoCommand(CLI::App& app) : command_(app) {
    app.footer(kChocoExample);
    for (const dialects::ChocoFlag& flag : dialects::choco_flags()) add(flag);
    const auto ours = [&](const std::string& names, auto& value, const char* help) {
      return app.add_option(names, value, help)->capture_default_str()->group(kOwnFlags);
    };
    ours("--like", like, "whose defaults and decay: auto, early or late")
        ->check(CLI::IsMember({"auto", "early", "late"}));
    ours("--engine", engine, "what carries the workers: auto, threads, mpi or tcp")
        ->check(CLI::IsMember({"auto", "threads", "mpi", "tcp"}));
    ours("--train_size,--train-size", train_size, "use only the first N training samples; 0: all");
    ours("--test_size,--test-size", test_size, "use only the first N test samples; 0: all");
    ours("--synthetic_shape,--synthetic-shape", synthetic_shape, "CxHxW of --data synthetic");
    ours("--threads", threads, "compute threads of a worker; 0: choose")
        ->check(CLI::Range(0, 4096));
    app.add_flag("--oversubscribe", oversubscribe, "mpirun: allow more processes than slots")
        ->group(kOwnFlags);
    app.add_flag("--explain", explain, "print the same as a native command, and end")
        ->group(kOwnFlags);
  }

  dialects::ChocoFlags flags() const {
    std::map<std::string, std::string> given;
    for (const auto& [name, option] : options_) {
      if (option->count() > 0) given[name] = values_.at(name);
    }
    return dialects::ChocoFlags(given);
  }

  std::string like = "auto";
  std::string engine = "auto";
  std::int64_t train_size = 0;
  std::int64_t test_size = 0;
  std::string synthetic_shape = config::RunConfig{}.synthetic_shape;
  std::int64_t threads = 0;
  bool oversubscribe = false;
  bool explain = false;

 private:
  void add(const dialects::ChocoFlag& flag) {
    std::string names = "--" + flag.name;
    std::string with_dashes = flag.name;
    std::replace(with_dashes.begin(), with_dashes.end(), '_', '-');
    if (with_dashes != flag.name) names += ",--" + with_dashes;
    if (!flag.letter.empty()) names += ",-" + flag.letter;
    const std::string help = flag.help + (flag.usual.empty() ? "" : " [" + flag.usual + "]");
    static const std::map<dialects::ChocoFlag::Kind, std::string> types = {
        {dialects::ChocoFlag::Kind::kText, "TEXT"},
        {dialects::ChocoFlag::Kind::kTruth, "True|False"},
        {dialects::ChocoFlag::Kind::kWhole, "N"},
        {dialects::ChocoFlag::Kind::kNumber, "NUMBER"},
        {dialects::ChocoFlag::Kind::kNumbers, "N,N,..."}};
    options_[flag.name] =
        command_.add_option(names, values_[flag.name], help)->type_name(types.at(flag.kind));
  }

  CLI::App& command_;
  std::map<std::string, std::string> values_;
  std::map<std::string, CLI::Option*> options_;
};

int own_rank() {
  const auto place = launch::detect_place(launch::own_variable);
  return place ? place->rank : 0;
}

dialects::ChocoSurroundings find_surroundings() {
  dialects::ChocoSurroundings around;
  around.gpus = engine::cuda_device_count();
  around.processes = launch::launched_processes();
  around.models = models::models().names();
  around.data_sets = data::data_sets().names();
  around.topologies = topology::topologies().names();
  around.engines = launch::engines().names();
  return around;
}

std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

// To how many others each worker sends in a step.
std::vector<int> receivers_of(const config::RunConfig& config) {
  if (!methods::uses(config.method, "topology")) return {};
  const auto graph =
      topology::topologies().make(config.topology, {.size = static_cast<int>(config.workers),
                                                    .seed = static_cast<Seed>(config.seed),
                                                    .degree = 0,
                                                    .file = {}});
  std::vector<int> receivers;
  for (Rank rank = 0; rank < graph->size(); ++rank) {
    receivers.push_back(static_cast<int>(graph->receivers(rank, 0).size()));
  }
  return receivers;
}

dialects::ChocoProgressOptions progress_options(const dialects::ChocoTranslation& job,
                                                const config::RunConfig& config) {
  dialects::ChocoProgressOptions options;
  options.ranks = static_cast<int>(std::max<std::int64_t>(1, config.workers));
  options.averages = methods::uses(config.method, "topology");
  options.tests_workers = config.eval_workers;
  options.receivers = receivers_of(config);
  options.track_time = job.track_time;
  options.display_time = job.display_time;
  const Clock::time_point began = Clock::now();
  options.now = [began] { return seconds_between(began, Clock::now()); };
  options.wall_time = wall_time;
  options.save = [](const std::string&, const std::string&) {};
  return options;
}

std::vector<metrics::EvaluationRecord> earlier_tests(const fs::path& run) {
  std::vector<metrics::EvaluationRecord> tests;
  if (!fs::exists(run / "metrics.jsonl")) return tests;
  for (const std::string& line :
       split(storage::read_text_file(run / "metrics.jsonl", kMaxText), '\n')) {
    const std::optional<metrics::AnyRecord> record = metrics::parse_record(line);
    if (!record) continue;
    if (const auto* test = std::get_if<metrics::EvaluationRecord>(&*record)) tests.push_back(*test);
  }
  return tests;
}

// Its logs go into the run's folder, after those that are there already.
void keep_logs(const fs::path& run, dialects::ChocoProgressOptions& options) {
  while (fs::exists(run / fmt::format("log-{}.json", options.first_log))) ++options.first_log;
  if (fs::exists(run / "log.txt"))
    options.earlier_text = storage::read_text_file(run / "log.txt", kMaxText);
  options.earlier_tests = earlier_tests(run);
  options.save = [run](const std::string& name, const std::string& content) {
    storage::write_file_atomically(run / name, content);
  };
}

// A run of the same name is another experiment, which keeps its folder.
std::string free_name(const std::string& runs_dir, const std::string& name) {
  if (name.empty()) return name;
  std::string candidate = name;
  for (int number = 2; fs::exists(fs::path(runs_dir) / candidate); ++number) {
    candidate = fmt::format("{}-{}", name, number);
  }
  return candidate;
}

// The flags must be those the run was begun with, but for what may change.
void check_resumable(const fs::path& run, const config::RunConfig& config) {
  std::vector<std::string> changed;
  for (const runs::ChangedSetting& each :
       runs::forbidden_changes(engine::read_run_config(run), config)) {
    changed.push_back(fmt::format("--{} is '{}' instead of '{}'", each.name, each.now, each.was));
  }
  if (changed.empty()) return;
  throw ConfigError("--resume " + run.string() + ": " +
                    dialects::in_words_of(dialects::choco_flag_names(), join(changed, "; ")) +
                    ". Give it the flags it was begun with");
}

int evaluate_only(const dialects::ChocoTranslation& job) {
  if (own_rank() > 0) return 0;  // the first one evaluates
  config::RunConfig config = engine::read_run_config(run_of(job.resume));
  dialects::ChocoProgressOptions options = progress_options(job, config);
  options.tests_workers = false;
  config.device = job.config.device;
  if (!job.config.data_dir.empty()) config.data_dir = job.config.data_dir;
  OneEvaluation evaluation(config);
  const storage::LoadedCheckpoint checkpoint = evaluation.take_latest(job.resume);
  metrics::EvaluationRecord record = evaluation.on_test_set();
  record.step = checkpoint.step;
  record.epoch = checkpoint.extra["engine"].value("epoch", 0.0);
  record.seconds = 0;
  const auto progress = dialects::make_choco_progress(stdout, stderr, std::move(options));
  progress->evaluated(record);
  progress->end();
  return 0;
}

void explain(const dialects::ChocoTranslation& job) {
  std::vector<std::string> extra = {"--runs-dir", job.runs_dir};
  if (!job.name.empty()) extra.insert(extra.end(), {"--name", job.name});
  if (!job.resume.empty()) extra = {"--resume", job.resume};
  std::vector<std::string> words = dialects::native_command(job.config, extra);
  if (job.launch) {
    std::vector<std::string> launch = {"cohort", "launch", "-n",
                                       std::to_string(job.launch->processes)};
    if (!job.launch->hosts_file.empty()) {
      launch.insert(launch.end(), {"--hosts", job.launch->hosts_file});
    }
    launch.push_back("--");
    launch.insert(launch.end(), words.begin() + 1, words.end());
    words = launch;
  }
  fmt::print("{}\n", dialects::shell_line(words));
}

int launch(const ChocoCommand& command, const dialects::ChocoLaunch& job,
           const std::vector<std::string>& arguments) {
  launch::LaunchRequest request;
  request.processes = job.processes;
  request.hosts_file = job.hosts_file;
  request.oversubscribe = command.oversubscribe;
  request.program = fs::read_symlink("/proc/self/exe");
  request.arguments.assign(arguments.begin() + 1, arguments.end());
  return run_with_launcher(request, /*dry_run=*/false);
}

void tell_rate(const config::RunConfig& config) {
  const std::vector<int> receivers = receivers_of(config);
  const double peak =
      dialects::choco_peak_rate(config, receivers.empty() ? 1 : receivers.front() + 1);
  fmt::print("learning rate will be scaled by the factor of {:.6g}. The scaled lr={:.6g}\n",
             config.lr > 0 ? peak / config.lr : 1, peak);
  std::fflush(stdout);
}

class ChocoObserver final : public ConsoleObserver {
 public:
  explicit ChocoObserver(const dialects::ChocoTranslation& job)
      : ConsoleObserver(dialects::choco_flag_names()), job_(job) {}

  void opened(const runs::OpenedRun& run) override {
    ConsoleObserver::opened(run);
    path_ = run.path;
  }

 private:
  std::unique_ptr<engine::Progress> display(const runs::WorkerSeat& seat) override {
    if (seat.totals == nullptr) return nullptr;
    dialects::ChocoProgressOptions options = progress_options(job_, seat.config);
    keep_logs(path_, options);
    return dialects::make_choco_progress(stdout, stderr, std::move(options));
  }
  bool ends_without_summary() const override { return true; }

  const dialects::ChocoTranslation& job_;
  fs::path path_;
};

int train_choco(const dialects::ChocoTranslation& job, const std::vector<std::string>& arguments) {
  runs::RunRequest request;
  request.runs_dir = job.runs_dir;
  request.name = free_name(job.runs_dir, job.name);
  if (!job.resume.empty()) {
    request.resume = run_of(job.resume).string();
    check_resumable(request.resume, job.config);
  }
  ChocoObserver observer(job);
  return train(job.config, request, observer, arguments);
}

int run_choco(const ChocoCommand& command, const std::vector<std::string>& arguments) {
  dialects::ChocoTranslation job =
      dialects::translate(command.flags(), find_surroundings(), command.like, command.engine);
  job.config.train_size = command.train_size;
  job.config.test_size = command.test_size;
  job.config.synthetic_shape = command.synthetic_shape;
  job.config.threads = command.threads;
  const bool speaks = own_rank() == 0;
  if (speaks && (command.explain || !job.launch)) {
    for (const std::string& line : job.notes) fmt::print(stderr, "{}\n", line);
  }
  if (command.explain) {
    if (speaks) explain(job);
    return 0;
  }
  if (job.launch && !job.evaluate) return launch(command, *job.launch, arguments);
  if (!job.work_dir.empty()) {
    std::error_code failed;
    fs::current_path(job.work_dir, failed);
    if (failed) throw ConfigError("--work_dir " + job.work_dir + ": " + failed.message());
  }
  if (job.evaluate) return evaluate_only(job);
  if (speaks) tell_rate(job.config);
  return train_choco(job, arguments);
}

}  // namespace

void add_choco(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "choco", "Train as CHOCO-SGD's program does, with its flags and its log");
  auto parsed = std::make_shared<ChocoCommand>(*command);
  command->callback(
      [parsed, &invocation] { invocation.exit_status = run_choco(*parsed, invocation.arguments); });
}

}  // namespace cohort::apps
