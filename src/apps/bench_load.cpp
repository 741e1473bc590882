#include "apps/bench_load.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/announcements.h"
#include "apps/config_flags.h"
#include "core/clock.h"
#include "data/loader.h"
#include "engine/assemble.h"
#include "methods/settings.h"

namespace cohort::apps {
namespace {

struct LoadBench {
  explicit LoadBench(CLI::App& command)
      : flags(command, {"data", "data-dir", "batch", "train-size", "image-size", "augment",
                        "fast-decode", "normalize", "loader-threads", "seed"}) {}

  ConfigFlags flags;
  int epochs = 3;
};

// Seconds for one pass over the training set.
double time_epoch(const config::RunConfig& config, const data::Dataset& data,
                  const data::SampleOrder& order, std::int64_t epoch) {
  const Step steps = order.steps_per_epoch();
  data::Loader loader(data, order,
                      {.threads = static_cast<int>(config.loader_threads),
                       .first_step = epoch * steps,
                       .last_step = (epoch + 1) * steps});
  const Clock::time_point start = Clock::now();
  while (!loader.done()) loader.next();
  return seconds_between(start, Clock::now());
}

void run_load_bench(const LoadBench& bench) {
  const config::RunConfig config = bench.flags.resolve({});
  methods::check_config(config);
  const auto data = open_announced_data(config);
  const data::SampleOrder order = engine::sample_order(config, *data->train, {});
  for (int epoch = 0; epoch < bench.epochs; ++epoch) {
    const double seconds = time_epoch(config, *data->train, order, epoch);
    const nlohmann::json line = {
        {"bench", "load"},
        {"data", config.data},
        {"augment", config.augment},
        {"fast_decode", config.fast_decode},
        {"loader_threads", config.loader_threads},
        {"samples", data->train->size()},
        {"seconds", seconds},
        {"samples_per_s", static_cast<double>(data->train->size()) / seconds}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
}

}  // namespace

void add_load_bench(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("load", "Samples a second that the loader reads, without any training");
  auto parsed = std::make_shared<LoadBench>(*command);
  command->add_option("--passes", parsed->epochs, "over the training set, a line for each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->callback([parsed] { run_load_bench(*parsed); });
}

}  // namespace cohort::apps
