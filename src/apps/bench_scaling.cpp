#include "apps/bench_scaling.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/announcements.h"
#include "apps/bench_setup.h"
#include "apps/environment.h"
#include "core/error.h"
#include "core/text.h"
#include "engine/assemble.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "runs/job_choice.h"
#include "runs/run_summary.h"

namespace cohort::apps {
namespace {

struct ScalingBench {
  explicit ScalingBench(CLI::App& command) : flags(command, step_settings(), bench_defaults()) {
    command.get_option("--batch")->description("samples of all workers in a step");
    command.get_option("--threads")->description("compute threads of a worker; 0: one");
    command.add_option("--modes,--method", modes, "methods to compare")
        ->delimiter(',')
        ->capture_default_str();
    command.add_option("--workers", workers, "numbers of workers")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    command.add_option("--engine", engine, "threads or nccl")->capture_default_str();
    command.add_option("--steps", steps, "steps to time")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_option("--warmup-steps", warmup, "steps before the clock starts")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--rounds", rounds, "repetitions, of which the fastest counts")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_flag("--json", json, "no table, only the lines of JSON");
  }

  ConfigFlags flags;
  std::vector<std::string> modes = {"local", "data-parallel", "all-reduce"};
  std::vector<int> workers = {1, 2, 4};
  std::string engine = "threads";
  Step steps = 20;
  Step warmup = 3;
  int rounds = 2;
  bool json = false;
};

struct Result {
  config::RunConfig config;
  engine::StepTiming timing;

  double milliseconds(double seconds) const {
    return 1e3 * seconds / static_cast<double>(timing.steps);
  }
  double step_ms() const { return milliseconds(timing.wall_seconds); }
  double data_ms() const { return milliseconds(timing.times.data_seconds); }
  double compute_ms() const { return milliseconds(timing.times.compute_seconds); }
  double exchange_ms() const { return milliseconds(timing.times.exchange_seconds); }
  double update_ms() const { return milliseconds(timing.times.update_seconds); }
};

bool is_alone(const std::string& method) {
  return methods::traits_of(method).workers == methods::MethodTraits::Workers::kOneAlone;
}
bool is_alone(const Result& result) { return is_alone(result.config.method); }

// The batch is that of all workers together, as in a study of the same job on more machines.
config::RunConfig config_for(const config::RunConfig& base, const std::string& mode, int workers,
                             const ScalingBench& bench) {
  config::RunConfig config = methods::with_method(base, mode);
  config.workers = workers;
  // The GPUs of the first so many workers.
  std::vector<std::string> gpus = split(config.world, ',');
  if (!config.world.empty() && static_cast<int>(gpus.size()) > workers) {
    gpus.resize(static_cast<std::size_t>(workers));
    config.world = join(gpus, ",");
  }
  config.engine = workers == 1 && is_alone(mode) ? "threads" : bench.engine;
  if (!methods::traits_of(mode).splits_batch) {
    if (config.batch % workers != 0) {
      throw ConfigError("--batch " + std::to_string(config.batch) + " is of all workers and must " +
                        "be a multiple of each number in --workers, " + std::to_string(workers) +
                        " is not");
    }
    config.batch /= workers;
  }
  return config;
}

engine::StepTiming measure(config::RunConfig& config, const data::DataSplits& data,
                           const ScalingBench& bench) {
  const auto job = runs::join_job(config, {}, announce_note);
  runs::check_method_suits(config, *job);
  const auto model = engine::build_model(config, *data.train, engine::InitialWeights::kLater);
  engine::choose_stepsize(config, job->shape().size, engine::largest_tensor(*model));
  auto members = job->join();
  return engine::time_steps(config, data, members, bench.warmup, bench.steps, bench_workers());
}

std::string share_text(double milliseconds, double whole) {
  return fmt::format("{:.1f} ms ({:.0f}%)", milliseconds, 100 * milliseconds / whole);
}

// Where the difference to a speed-up of as many times as there are workers went.
std::string explanation(const Result& result, const Result& local) {
  const auto workers = static_cast<double>(result.config.workers);
  const double step = result.step_ms();
  const double ideal = local.step_ms() / workers;
  std::string text = fmt::format(
      "{} with {} worker{}: {:.2f} times as fast as one worker alone; {:.2f} would be perfect.",
      result.config.method, result.config.workers, result.config.workers == 1 ? "" : "s",
      local.step_ms() / step, workers);
  struct Part {
    std::string name;
    double lost_ms;
  };
  std::vector<Part> parts = {
      {"waiting for data", result.data_ms() - local.data_ms() / workers},
      {"exchange that backward could not hide", result.exchange_ms()},
      {"updates, which every worker repeats", result.update_ms() - local.update_ms() / workers},
      {"slower computing (smaller batches; shared cores, caches and memory)",
       result.compute_ms() - local.compute_ms() / workers}};
  if (methods::traits_of(result.config.method).splits_batch) {
    parts[1].name = "exchange, which nothing hides, and waiting for the first worker's update";
    parts[2].name = "the update, which one worker makes for all";
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.lost_ms > b.lost_ms; });
  std::vector<std::string> said;
  for (const Part& part : parts) {
    if (part.lost_ms < 0.01 * step) continue;
    said.push_back(share_text(part.lost_ms, step) + " " + part.name);
  }
  if (!said.empty() && step > ideal) {
    text += fmt::format(" Of a step's {:.1f} ms, {:.1f} were needed; lost: {}.", step, ideal,
                        join(said, ", "));
  }
  const std::string late =
      runs::late_text(result.timing.late, result.timing.steps, result.timing.wall_seconds);
  if (!late.empty()) text += " " + late + ".";
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  if (result.config.device == "cpu" && result.config.workers * result.config.threads > cores) {
    text += fmt::format(" There are only {} cores for {} workers.", cores, result.config.workers);
  }
  return text;
}

std::string markdown(const std::vector<Result>& results, const Result& local) {
  std::string text =
      "| method | workers | step ms | data wait | compute | exchange | update | samples/s | "
      "speed-up | without data wait |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const Result& each : results) {
    text += fmt::format(
        "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {:.2f} | {:.2f} |\n",
        each.config.method, each.config.workers, each.step_ms(), each.data_ms(), each.compute_ms(),
        each.exchange_ms(), each.update_ms(),
        static_cast<double>(each.timing.samples) / each.timing.wall_seconds,
        local.step_ms() / each.step_ms(),
        (local.step_ms() - local.data_ms()) / (each.step_ms() - each.data_ms()));
  }
  return text;
}

void run_scaling_bench(const ScalingBench& bench) {
  if (bench.engine != "threads" && bench.engine != "nccl") {
    throw ConfigError(
        "--engine " + bench.engine +
        ": scaling is measured within one process, by threads or nccl; for one number "
        "of processes use `mpirun -n N cohort bench step`");
  }
  config::RunConfig base = bench_config(bench.flags);
  if (base.threads == 0) base.threads = 1;  // a worker stands for a core, as elsewhere for a GPU
  size_synthetic_data(base, base.batch * base.accumulate);
  check_somebody_uses(base, bench.modes);
  std::vector<std::pair<std::string, int>> plan;
  for (const std::string& mode : bench.modes) {
    if (is_alone(mode)) {
      plan.emplace_back(mode, 1);
      continue;
    }
    for (const int workers : bench.workers) plan.emplace_back(mode, workers);
  }
  if (std::none_of(plan.begin(), plan.end(), [](const auto& p) { return is_alone(p.first); })) {
    plan.insert(plan.begin(), {"local", 1});  // what the others are compared with
  }
  const auto data = open_announced_data(base);
  std::vector<Result> results;
  for (int round = 0; round < bench.rounds; ++round) {
    for (std::size_t i = 0; i < plan.size(); ++i) {
      // What was found out in the first round stays.
      config::RunConfig config =
          round > 0 ? results[i].config : config_for(base, plan[i].first, plan[i].second, bench);
      methods::check_config(config);
      runs::check_names(config);
      const engine::StepTiming timing = measure(config, *data, bench);
      if (round == 0) results.push_back({config, timing});
      if (timing.wall_seconds < results[i].timing.wall_seconds) results[i].timing = timing;
    }
  }
  const Result& local = *std::find_if(results.begin(), results.end(),
                                      [](const Result& each) { return is_alone(each); });
  for (const Result& each : results) {
    nlohmann::json line = {{"bench", "scaling"}, {"speed_up", local.step_ms() / each.step_ms()}};
    line.update(timing_json(each.config, each.timing));
    if (!is_alone(each)) line["explanation"] = explanation(each, local);
    fmt::print("{}\n", line.dump());
  }
  if (bench.json) return;
  fmt::print("\n{}\n", markdown(results, local));
  for (const Result& each : results) {
    if (!is_alone(each)) fmt::print("{}\n", explanation(each, local));
  }
}

}  // namespace

void add_scaling_bench(CLI::App& bench_command) {
  CLI::App* command = bench_command.add_subcommand(
      "scaling", "One batch on more and more workers: speed-up, and where the rest went");
  auto parsed = std::make_shared<ScalingBench>(*command);
  command->callback([parsed] { run_scaling_bench(*parsed); });
}

}  // namespace cohort::apps
