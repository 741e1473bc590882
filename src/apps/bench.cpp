#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "apps/bench_all_reduce.h"
#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/environment.h"
#include "core/error.h"
#include "engine/assemble.h"
#include "engine/device.h"

namespace cohort {
namespace {

struct StepBench {
  explicit StepBench(CLI::App& command)
      : flags(command, {"model",
                        "method",
                        "batch",
                        "threads",
                        "device",
                        "memory-format",
                        "seed",
                        "data",
                        "data-dir",
                        "augment",
                        "image-size",
                        "loader-threads",
                        "optimizer",
                        "lr",
                        "momentum",
                        "nesterov",
                        "weight-decay",
                        "dropout",
                        "depth",
                        "widen",
                        "growth",
                        "accumulate",
                        "synthetic-shape",
                        "synthetic-classes",
                        "train-size"}) {
    command.add_option("--steps", steps, "steps to time")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_option("--warmup-steps", warmup, "steps before the clock starts")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  }

  ConfigFlags flags;
  Step steps = 20;
  Step warmup = 3;
};

// Images as the model's usual data set has them, unless the user chose.
RunConfig bench_config(const StepBench& bench) {
  RunConfig defaults;
  defaults.data = "synthetic";
  defaults.lr = 0.01;
  defaults.weight_decay = 1e-4;
  RunConfig config = bench.flags.resolve(defaults);
  if (config.synthetic_shape == defaults.synthetic_shape) {
    const bool gray =
        config.model.rfind("mlp", 0) == 0 || config.model == "lenet" || config.model == "mnistnet";
    config.synthetic_shape = gray ? "1x28x28" : "3x32x32";
  }
  // Whole steps only: a short one at the end of an epoch would flatter the mean.
  config.drop_last = true;
  const std::int64_t step_samples = config.batch * config.accumulate;
  if (config.data == "synthetic" && config.train_size == 0) {
    config.train_size = std::max<std::int64_t>(1, 4096 / step_samples) * step_samples;
  }
  return config;
}

nlohmann::json report(const RunConfig& config, const StepBench& bench, const StepTimes& times,
                      double wall_seconds, std::int64_t samples) {
  const auto steps = static_cast<double>(bench.steps);
  const auto milliseconds = [&](double seconds) { return 1e3 * seconds / steps; };
  return {{"bench", "step"},
          {"model", config.model},
          {"data", config.data},
          {"method", config.method},
          {"device", config.device},
          {"batch", config.batch},
          {"accumulate", config.accumulate},
          {"steps", bench.steps},
          {"step_ms", milliseconds(wall_seconds)},
          {"samples_per_s", static_cast<double>(samples) / wall_seconds},
          {"data_ms", milliseconds(times.data_seconds)},
          {"compute_ms", milliseconds(times.compute_seconds)},
          {"exchange_ms", milliseconds(times.exchange_seconds)},
          {"update_ms", milliseconds(times.update_seconds)}};
}

void run_step_bench(const StepBench& bench) {
  RunConfig config = bench_config(bench);
  check_config(config);
  const auto data = open_data(config, data_search_path());
  const auto model = build_model(config, *data->train);
  set_compute_threads(config, *model);
  const bool channels_last = wants_channels_last(config, *model);
  const SampleOrder order = sample_order(config, *data->train, {});
  const TrainerOptions options = trainer_options(config, *model, order, {});
  Replica replica(*model, replica_options(config, *model, options.step.device));
  const auto method = methods().make(config.method, MethodOptions{});
  TrainingStep step(*model, replica, *method, options.step);
  method->start(replica);

  const Step total = bench.warmup + bench.steps;
  Loader loader =
      make_loader(*data->train, order, {.threads = options.loader_threads, .last_step = total},
                  options.placement.device);
  ClassificationSums sums;
  StepTimes times;
  std::int64_t samples = 0;
  Clock::time_point start = Clock::now();
  for (Step i = 0; i < total; ++i) {
    if (i == bench.warmup) {
      times = {};
      samples = 0;
      start = Clock::now();
    }
    const Clock::time_point asked = Clock::now();
    const LoadedBatch loaded = loader.next();
    times.data_seconds += seconds_between(asked, Clock::now());
    const BatchTensors batch = to_tensors(loaded, data->train->shape(), options.placement);
    step.run(batch, batch.labels.size(0), {i, config.lr}, sums, times);
    samples += batch.labels.size(0);
  }
  method->settle(replica);
  const double wall = seconds_between(start, Clock::now());
  nlohmann::json line = report(config, bench, times, wall, samples);
  line["threads"] = config.threads;
  line["memory_format"] = channels_last ? "channels-last" : "contiguous";
  line["parameters"] = model->store().numel();
  fmt::print("{}\n", line.dump());
}

}  // namespace

void add_bench(CLI::App& program, Invocation&) {
  CLI::App* command =
      program.add_subcommand("bench", "Measure parts of the system; one JSON object a line");
  command->require_subcommand(1);
  CLI::App* step = command->add_subcommand("step", "Time of one training step and its parts");
  add_all_reduce_bench(*command);
  auto parsed = std::make_shared<StepBench>(*step);
  step->callback([parsed] { run_step_bench(*parsed); });
}

}  // namespace cohort
