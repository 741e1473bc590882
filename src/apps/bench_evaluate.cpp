#include "apps/bench_evaluate.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/announcements.h"
#include "apps/config_flags.h"
#include "apps/dump_scoring.h"
#include "apps/environment.h"
#include "apps/serving.h"
#include "core/clock.h"
#include "core/private_folder.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "launch/job_environment.h"

namespace cohort::apps {
namespace {

config::RunConfig defaults() {
  config::RunConfig config;
  config.data = "synthetic";
  config.synthetic_shape = "1x28x28";
  config.test_size = 10000;
  config.train_size = 10;
  config.eval_batch = kDumpBatch;
  return config;
}

struct EvaluateBench {
  explicit EvaluateBench(CLI::App& command)
      : flags(command,
              {"model", "data", "data-dir", "device", "eval-batch", "test-size", "memory-format",
               "synthetic-shape", "synthetic-classes"},
              defaults()) {}

  ConfigFlags flags;
  std::vector<int> jobs = {1, 2};
  int models = 16;
};

// Dumps of one model, as a run would have left them.
void write_dumps(const config::RunConfig& config, const data::Dataset& data,
                 const std::filesystem::path& run, int count) {
  const auto model = engine::build_model(config, data);
  methods::Replica replica(*model, engine::replica_options(config, *model, at::kCPU));
  storage::DumpWriterOptions options;
  options.root = run;
  storage::DumpWriter writer(options);
  for (int batch = 0; batch < count; ++batch) {
    storage::DumpName name;
    name.batch = batch;
    writer.write(name, engine::copy_model(replica));
  }
  writer.finish();
}

void run_evaluate_bench(const EvaluateBench& bench) {
  const config::RunConfig config = bench.flags.resolve(defaults());
  const auto data = open_announced_data(config);
  const PrivateFolder dumps(launch::runtime_folder(), "bench");
  const std::filesystem::path& folder = dumps.path();
  write_dumps(config, *data->test, folder, bench.models);
  double alone = 0;
  for (const int jobs : bench.jobs) {
    DumpScoringRequest request;
    request.jobs = jobs;
    request.again = true;
    request.progress = false;
    score_dumps(folder, config, *data->test, request);  // warms up
    const DumpScoringReport report = score_dumps(folder, config, *data->test, request);
    const double seconds = report.evaluation.seconds / bench.models;
    if (jobs == bench.jobs.front()) alone = seconds;
    const nlohmann::json line = {
        {"bench", "evaluate"},
        {"model", config.model},
        {"images", data->test->size()},
        {"batch", config.eval_batch},
        {"jobs", jobs},
        {"models", bench.models},
        {"seconds_per_model", seconds},
        {"images_per_s", static_cast<double>(data->test->size()) / seconds},
        {"times_the_first", alone / seconds}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
}

}  // namespace

void add_evaluate_bench(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "evaluate", "Evaluation of dumped models, one after another and several at a time");
  auto parsed = std::make_shared<EvaluateBench>(*command);
  command->add_option("--jobs", parsed->jobs, "models at a time, with one thread each")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--models", parsed->models, "to evaluate")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->callback([parsed] { run_evaluate_bench(*parsed); });
}

}  // namespace cohort::apps
