#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/announcements.h"
#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/environment.h"
#include "core/clock.h"
#include "core/exit_status.h"
#include "core/text.h"
#include "engine/assemble.h"
#include "engine/run_directory.h"
#include "engine/simulation.h"
#include "methods/settings.h"
#include "runs/job_choice.h"
#include "runs/run_files.h"
#include "runs/run_summary.h"

namespace cohort::apps {
namespace {

struct SimulateCommand {
  explicit SimulateCommand(CLI::App& command) : flags(command) {
    command.add_option("--name", name, "folder of this run below --runs-dir")
        ->default_str("MODEL-DATA-001, the next free number");
    command.add_option("--runs-dir", runs_dir, "where run directories are made")
        ->capture_default_str();
    command.add_flag("--json", json, "print the summary as JSON on standard output");
  }

  ConfigFlags flags;
  std::string name;
  std::string runs_dir = "runs";
  bool json = false;
};

std::int64_t peak_bytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

// As one worker would write them who is all of them.
void record(metrics::MetricsSink& metrics, const engine::SimulatedMoment& moment, double seconds,
            Step steps) {
  metrics::StepRecord step;
  step.time_seconds = seconds;
  step.step = moment.step;
  step.epoch = moment.epoch;
  step.loss = moment.loss;
  step.top1 = moment.accuracy;
  step.lr = moment.lr;
  step.samples = moment.samples;
  step.steps = steps;
  step.bytes_sent = moment.bytes_sent;
  step.bytes_received = moment.bytes_sent;
  step.consensus_distance = moment.consensus_distance;
  metrics.record(step);
  if (!moment.average) return;
  metrics::EvaluationRecord evaluation;
  evaluation.time_seconds = seconds;
  evaluation.step = moment.step;
  evaluation.epoch = moment.epoch;
  evaluation.split = "test";
  evaluation.loss = moment.average->loss;
  evaluation.top1 = moment.average->top1;
  evaluation.top5 = moment.average->top5;
  evaluation.samples = moment.average->samples;
  evaluation.seconds = moment.average->seconds;
  evaluation.consensus_distance = moment.consensus_distance;
  metrics.record(evaluation);
}

void print_moment(const engine::SimulatedMoment& moment, double seconds) {
  std::string line = fmt::format("step {}  epoch {:.3g}  loss {:.4f}  apart {:.4g}", moment.step,
                                 moment.epoch, moment.loss, moment.consensus_distance);
  if (moment.average) {
    line += fmt::format("  average of the models: test loss {:.4f}  top-1 {:.2f}%",
                        moment.average->loss, 100 * moment.average->top1);
  }
  fmt::print(stderr, "{}  [{:.0f} s]\n", line, seconds);
}

// Settings of real runs that would do nothing here.
void refuse_idle(const std::vector<std::string>& given) {
  for (const char* idle :
       {"init", "target-accuracy", "eval-workers", "batch-norm", "checkpoint-every", "keep",
        "dump-every", "keep-dumps", "world", "check-replicas", "loader-threads"}) {
    if (std::find(given.begin(), given.end(), idle) != given.end()) {
      throw ConfigError("cohort simulate does not know --" + std::string(idle) + ": leave it out");
    }
  }
}

int run_simulate(const SimulateCommand& command, const std::vector<std::string>& arguments) {
  config::RunConfig config = command.flags.resolve();
  refuse_idle(command.flags.given());
  runs::check_names(config);
  if (config.engine != "auto" || config.device != "cpu") {
    throw ConfigError(
        "cohort simulate computes on this machine's cores: leave out --engine and "
        "--device");
  }
  const auto data = open_announced_data(config);
  engine::Simulation simulation(config, *data);
  engine::RunDirectory run = engine::RunDirectory::create(
      command.runs_dir, command.name, config.model + "-" + config.data,
      {{"config", methods::to_json(config)},
       {"unused", methods::unused_settings(config)},
       {"steps_per_epoch", simulation.steps_per_epoch()},
       {"command", arguments},
       {"simulated", true},
       {"host", runs::describe_host()},
       {"model", {{"parameters", simulation.parameters()}}},
       {"data", {{"train_samples", data->train->size()}, {"test_samples", data->test->size()}}}});
  fmt::print(stderr, "{} workers with {} parameters each, {} on {}, {} steps\nrun      {}\n",
             with_commas(config.workers), with_commas(simulation.parameters()), config.method,
             config.topology, with_commas(simulation.total_steps()), run.path().string());
  watch_signals();
  const auto start = Clock::now();
  nlohmann::json summary;
  Step told = 0;
  std::uint64_t sent = 0;
  simulation.run(stop_requested(), [&](const engine::SimulatedMoment& moment) {
    const double seconds = seconds_between(start, Clock::now());
    record(run.metrics(), moment, seconds, moment.step - told);
    print_moment(moment, seconds);
    told = moment.step;
    sent += moment.bytes_sent;
    summary["loss"] = moment.loss;
    summary["consensus_distance"] = moment.consensus_distance;
    if (moment.average) summary["top1"] = moment.average->top1;
  });
  const bool interrupted = stop_requested() && told < simulation.total_steps();
  summary["reason"] = interrupted ? "interrupted" : "finished";
  summary["steps"] = told;
  summary["seconds"] = seconds_between(start, Clock::now());
  summary["workers"] = config.workers;
  summary["bytes_sent"] = sent;
  summary["models_bytes"] = config.workers * simulation.parameters() * 4;
  summary["peak_bytes"] = peak_bytes();
  run.metrics().flush();
  run.write_summary(summary);
  if (command.json) fmt::print("{}\n", summary.dump());
  fmt::print(stderr, "memory   {} MB at most, of which {} MB are the models\n",
             with_commas(peak_bytes() / 1000000),
             with_commas(config.workers * simulation.parameters() * 4 / 1000000));
  return interrupted ? kExitInterrupted : 0;
}

}  // namespace

void add_simulate(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "simulate", "Gossip of many workers in one process, on a few threads: no checkpoints");
  const auto flags = std::make_shared<SimulateCommand>(*command);
  command->callback([flags, &invocation] {
    invocation.exit_status = run_simulate(*flags, invocation.arguments);
  });
}

}  // namespace cohort::apps
