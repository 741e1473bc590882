#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/environment.h"
#include "apps/run_summary.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "core/text.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"

namespace cohort {
namespace {

constexpr int kInterrupted = 130;

// What may differ when a run goes on; anything else would make it another run.
const std::vector<std::string>& changeable_on_resume() {
  static const std::vector<std::string> names = {
      "epochs",         "iterations",   "target-accuracy",  "eval-every",
      "eval-batch",     "record-every", "checkpoint-every", "keep",
      "loader-threads", "threads",      "device",           "data-dir"};
  return names;
}

struct TrainCommand {
  explicit TrainCommand(CLI::App& command) : flags(command) {
    command.add_option("--name", name, "folder of this run below --runs-dir")
        ->default_str("MODEL-DATA-001, the next free number");
    command.add_option("--runs-dir", runs_dir, "where run directories are made")
        ->capture_default_str();
    command.add_option("--resume", resume, "go on with the run in this directory")
        ->type_name("DIR");
    command.add_flag("--json", json, "print the summary as JSON on standard output");
    command.add_flag("--quiet", quiet, "no progress");
    command.add_option("--failpoints", failpoints, "")->group("");
  }

  ConfigFlags flags;
  std::string name;
  std::string runs_dir = "runs";
  std::string resume;
  std::string failpoints;
  bool json = false;
  bool quiet = false;
};

RunConfig resolve_config(const TrainCommand& command) {
  if (command.resume.empty()) return command.flags.resolve();
  if (!command.name.empty() || command.flags.config_file_given()) {
    throw ConfigError(
        "--resume takes name and configuration from the run: leave --name and "
        "--config out");
  }
  for (const std::string& given : command.flags.given()) {
    const auto& free = changeable_on_resume();
    if (std::find(free.begin(), free.end(), given) == free.end()) {
      throw ConfigError("--" + given +
                        " cannot change when a run is resumed; these can: " + join(free, ", ") +
                        ". For another run from its weights: cohort export, "
                        "then --init");
    }
  }
  RunConfig config = command.flags.resolve(read_run_config(command.resume));
  const std::vector<std::string> given = command.flags.given();
  const auto is_given = [&](const char* name) {
    return std::find(given.begin(), given.end(), name) != given.end();
  };
  // A run begun with --iterations goes on by epochs when that is what is asked for now.
  if (is_given("epochs") && !is_given("iterations")) config.iterations = 0;
  return config;
}

// So that the run can be repeated and evaluated from anywhere.
void make_paths_absolute(RunConfig& config) {
  for (std::string* path : {&config.data_dir, &config.init}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  }
}

// Then its weights come from there, and the file it began with may be gone.
bool has_checkpoint(const std::string& run) {
  return !run.empty() &&
         !CheckpointStore(std::filesystem::path(run) / "checkpoints", 1).list().empty();
}

std::unique_ptr<Progress> choose_progress(const TrainCommand& command) {
  if (command.quiet) return make_quiet_progress(stderr);
  return is_terminal(stderr) ? make_progress_bar(stderr) : make_plain_progress(stderr);
}

void announce(const RunConfig& config, const Model& model, const DataSplits& data,
              const RunDirectory& run) {
  const SampleShape shape = data.train->shape();
  fmt::print(stderr, "model    {}: {} parameters\n", config.model,
             with_commas(model.store().numel()));
  fmt::print(stderr, "data     {}: {} training and {} test samples of {}x{}x{}, {} classes{}\n",
             config.data, with_commas(data.train->size()), with_commas(data.test->size()),
             shape.channels, shape.height, shape.width, data.train->class_names().size(),
             data.found_at.empty() ? "" : ", from " + data.found_at.string());
  fmt::print(stderr, "method   {} on {}, {} thread{}\n", config.method, config.device,
             config.threads, config.threads == 1 ? "" : "s");
  fmt::print(stderr, "run      {}\n", run.path().string());
}

nlohmann::json describe_data(const DataSplits& data) {
  return {{"found_at", data.found_at.string()},
          {"train_samples", data.train->size()},
          {"test_samples", data.test->size()},
          {"classes", data.train->class_names()}};
}

nlohmann::json run_document(const RunConfig& config, const Model& model, const DataSplits& data,
                            const std::vector<std::string>& arguments) {
  return {{"config", to_json(config)},
          {"command", arguments},
          {"resumed_by", nlohmann::json::array()},
          {"host", describe_host()},
          {"model", {{"parameters", model.store().numel()}}},
          {"data", describe_data(data)}};
}

// The document of a run that goes on: its first command stays, the data must be the same.
nlohmann::json resumed_document(const std::string& run, const RunConfig& config,
                                const DataSplits& data, const std::vector<std::string>& arguments) {
  nlohmann::json document = read_run_json(run);
  const nlohmann::json now = describe_data(data);
  for (const char* key : {"train_samples", "test_samples", "classes"}) {
    if (document["data"][key] != now[key]) {
      throw ConfigError("the data at " + now["found_at"].dump() + " are not those that " + run +
                        " was trained on: other " + key + "; give the right --data-dir");
    }
  }
  document["config"] = to_json(config);
  document["resumed_by"].push_back(arguments);
  document["host"] = describe_host();
  return document;
}

void resume_from(RunDirectory& run, const CheckpointStore& store, Trainer& trainer,
                 Progress& progress, Step total) {
  const auto checkpoint =
      store.load_latest([&](const std::string& warning) { progress.note("warning: " + warning); });
  if (!checkpoint) {
    progress.note("no checkpoint yet in " + store.folder().string() + ": starting from step 0");
    run.rewind_metrics(0);
    return;
  }
  if (checkpoint->step > total) {
    throw ConfigError(fmt::format("{} is at step {} already, beyond the {} asked for",
                                  run.path().string(), checkpoint->step, total));
  }
  trainer.resume(*checkpoint);
  run.rewind_metrics(checkpoint->extra["engine"].value("metrics_bytes", std::uint64_t{0}));
  progress.note(
      fmt::format("resuming from {} at step {}", checkpoint->folder.string(), checkpoint->step));
}

int run_train(const TrainCommand& command, const std::vector<std::string>& arguments) {
  set_failpoints(command.failpoints);
  RunConfig config = resolve_config(command);
  make_paths_absolute(config);
  check_config(config);
  methods().find(config.method);
  models().find(config.model);
  data_sets().find(config.data);
  optimizers().find(config.optimizer);
  schedules().find(config.schedule);
  parse_device(config.device);

  const auto data = open_data(config, data_search_path());
  const auto model = build_model(config, *data->train);
  set_compute_threads(config, *model);
  const SampleOrder order = sample_order(config, *data->train);
  const auto schedule = build_schedule(config, order);
  const TrainerOptions options = trainer_options(config, *model, order);
  const auto progress = choose_progress(command);
  if (!config.init.empty() && !has_checkpoint(command.resume)) {
    for (const std::string& line : initialize_from(config.init, *model)) progress->note(line);
  }
  Replica replica(*model, replica_options(config, *model));
  const auto method = methods().make(config.method, MethodOptions{});

  RunDirectory run = command.resume.empty() ? RunDirectory::create(command.runs_dir, command.name,
                                                                   config.model + "-" + config.data)
                                            : RunDirectory::open(command.resume);
  const nlohmann::json document = command.resume.empty()
                                      ? run_document(config, *model, *data, arguments)
                                      : resumed_document(command.resume, config, *data, arguments);
  if (command.resume.empty()) run.write_run_json(document);
  if (!command.quiet) announce(config, *model, *data, run);

  CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
  Trainer trainer({.model = *model,
                   .replica = replica,
                   .method = *method,
                   .schedule = *schedule,
                   .train = *data->train,
                   .test = data->test.get(),
                   .order = order,
                   .metrics = run.metrics(),
                   .progress = *progress,
                   .checkpoints = &checkpoints,
                   .metrics_bytes = [&run] { return run.metrics_bytes(); }},
                  options);
  if (!command.resume.empty()) {
    resume_from(run, checkpoints, trainer, *progress, options.total_steps);
    run.write_run_json(document);
  }
  watch_signals();
  const TrainingOutcome outcome = trainer.run(stop_requested());
  const nlohmann::json summary = summarize(outcome, order.steps_per_epoch(), run.path());
  run.write_summary(summary);
  if (command.json) fmt::print("{}\n", summary.dump());
  if (!command.quiet) print_summary(stderr, outcome, run.path());
  return outcome.reason == StopReason::kInterrupted ? kInterrupted : 0;
}

}  // namespace

void add_train(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand("train", "Train a model, or go on with a run");
  auto parsed = std::make_shared<TrainCommand>(*command);
  command->callback(
      [parsed, &invocation] { invocation.exit_status = run_train(*parsed, invocation.arguments); });
}

}  // namespace cohort
