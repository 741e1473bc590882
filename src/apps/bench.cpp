#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "apps/announcements.h"
#include "apps/bench_all_reduce.h"
#include "apps/bench_compress.h"
#include "apps/bench_evaluate.h"
#include "apps/bench_load.h"
#include "apps/bench_push_pull.h"
#include "apps/bench_scaling.h"
#include "apps/bench_setup.h"
#include "apps/bench_straggler.h"
#include "apps/command.h"
#include "apps/environment.h"
#include "engine/assemble.h"
#include "launch/job.h"
#include "methods/settings.h"
#include "runs/agreement.h"
#include "runs/job_choice.h"

namespace cohort::apps {
namespace {

std::vector<std::string> settings_of_step() {
  std::vector<std::string> names = step_settings();
  names.insert(names.end(), {"method", "workers", "engine"});
  return names;
}

struct StepBench {
  explicit StepBench(CLI::App& command) : flags(command, settings_of_step(), bench_defaults()) {
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

void run_step_bench(const StepBench& bench) {
  config::RunConfig config = bench_config(bench.flags);
  methods::check_config(config);
  runs::check_names(config);
  const auto job = runs::join_job(config, {}, announce_note);
  const launch::JobShape shape = job->shape();
  runs::check_method_suits(config, *job);
  size_synthetic_data(config, engine::batch_of_all(config, shape.size));
  const auto data = engine::open_data(config, data_search_path());
  if (shape.process == 0) announce_data(config, *data);
  const auto model = engine::build_model(config, *data->train, engine::InitialWeights::kLater);
  if (shape.process == 0)
    engine::choose_stepsize(config, shape.size, engine::largest_tensor(*model));
  config.consensus_stepsize =
      runs::from_first_process(job->between_processes(), config.consensus_stepsize);
  engine::set_compute_threads(config, *model, shape.host_size);
  engine::check_workers(config, *data, shape.size, {shape.first_rank, shape.local_size});
  auto members = job->join();
  nlohmann::json line = {{"bench", "step"}};
  line.update(timing_json(config, engine::time_steps(config, *data, members, bench.warmup,
                                                     bench.steps, bench_workers())));
  if (shape.process == 0) fmt::print("{}\n", line.dump());
}

}  // namespace

void add_bench(CLI::App& program, Invocation&) {
  CLI::App* command =
      program.add_subcommand("bench", "Measure parts of the system; one JSON object a line");
  command->require_subcommand(1);
  CLI::App* step = command->add_subcommand("step", "Time of one training step and its parts");
  auto parsed = std::make_shared<StepBench>(*step);
  step->callback([parsed] { run_step_bench(*parsed); });
  add_scaling_bench(*command);
  add_all_reduce_bench(*command);
  add_push_pull_bench(*command);
  add_straggler_bench(*command);
  add_evaluate_bench(*command);
  add_compress_bench(*command);
  add_load_bench(*command);
}

}  // namespace cohort::apps
