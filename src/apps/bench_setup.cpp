#include "apps/bench_setup.h"

#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "core/error.h"
#include "core/text.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "runs/memory.h"

namespace cohort::apps {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::vector<std::string>& step_settings() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"model",
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
                                    "train-size",
                                    "world",
                                    "batch-norm",
                                    "fast-decode",
                                    "precision",
                                    "graph"};
    // What methods have of their own whose workers need no servers.
    for (const config::ConfigField& field : methods::config_fields()) {
      const auto users = methods::methods_with(field.name);
      const bool in_step = std::any_of(users.begin(), users.end(), [](const std::string& method) {
        return methods::traits_of(method).in_step();
      });
      if (in_step && field.group != config::setting_group::kRecord && !contains(all, field.name)) {
        all.push_back(field.name);
      }
    }
    return all;
  }();
  return names;
}

void check_somebody_uses(const config::RunConfig& config, const std::vector<std::string>& methods) {
  for (const config::ConfigField& field : methods::config_fields()) {
    if (field.name == "method") continue;
    const std::string asked = config::field_text(config, field);
    if (std::none_of(methods.begin(), methods.end(), [&](const std::string& method) {
          return config::field_text(methods::with_method(config, method), field) == asked;
        })) {
      throw ConfigError("--" + field.name + " " + asked + " does nothing with any of " +
                        join(methods, ", ") + ": leave it out");
    }
  }
}

config::RunConfig bench_defaults() {
  config::RunConfig defaults;
  defaults.data = "synthetic";
  defaults.lr = 0.01;
  defaults.weight_decay = 1e-4;
  methods::set_setting(defaults, "check-replicas", std::int64_t{0});
  return defaults;
}

config::RunConfig bench_config(const ConfigFlags& flags) {
  const config::RunConfig defaults = bench_defaults();
  config::RunConfig config = flags.resolve(defaults);
  if (config.synthetic_shape == defaults.synthetic_shape) {
    const bool gray =
        config.model.rfind("mlp", 0) == 0 || config.model == "lenet" || config.model == "mnistnet";
    config.synthetic_shape = gray ? "1x28x28" : "3x32x32";
  }
  // Whole steps only: a short one at the end of an epoch would flatter the mean.
  config.drop_last = true;
  return config;
}

void size_synthetic_data(config::RunConfig& config, std::int64_t step_samples) {
  if (config.data != "synthetic") return;
  config.test_size = 1;  // none is evaluated
  if (config.train_size == 0) {
    config.train_size = std::max<std::int64_t>(1, 4096 / step_samples) * step_samples;
  }
}

engine::WorkerSetup bench_workers() {
  engine::WorkerSetup setup;
  setup.out_of_memory = runs::out_of_memory_text;
  return setup;
}

nlohmann::json timing_json(const config::RunConfig& config, const engine::StepTiming& timing) {
  const auto steps = static_cast<double>(timing.steps);
  const auto milliseconds = [&](double seconds) { return 1e3 * seconds / steps; };
  const nlohmann::json settings = methods::to_json(config);
  nlohmann::json late = nlohmann::json::array();
  for (const methods::Lateness& each : timing.late) {
    late.push_back({{"ms", milliseconds(each.seconds)},
                    {"data_ms", milliseconds(each.data_seconds)},
                    {"steps_last", each.steps_last}});
  }
  nlohmann::json line = {
      {"model", config.model},
      {"parameters", timing.parameters},
      {"data", config.data},
      {"method", config.method},
      {"engine", config.engine},
      {"workers", config.workers},
      {"device", config.device},
      {"threads", config.threads},
      {"memory_format", timing.channels_last ? "channels-last" : "contiguous"},
      {"precision", config.precision},
      {"batch", config.batch},
      {"accumulate", config.accumulate},
      {"steps", timing.steps},
      {"step_ms", milliseconds(timing.wall_seconds)},
      {"samples_per_s", static_cast<double>(timing.samples) / timing.wall_seconds},
      {"data_ms", milliseconds(timing.times.data_seconds)},
      {"compute_ms", milliseconds(timing.times.compute_seconds)},
      {"exchange_ms", milliseconds(timing.times.exchange_seconds)},
      {"update_ms", milliseconds(timing.times.update_seconds)},
      {"late", late},
      {"bytes_sent_per_step", static_cast<double>(timing.traffic.sent) / steps},
      {"peak_memory_mib", peak_memory_mib()}};
  for (const char* name : {"topology", "overlap", "compressor"}) {
    if (methods::uses(config.method, name)) line[name] = settings.at(name);
  }
  return line;
}

double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace cohort::apps
