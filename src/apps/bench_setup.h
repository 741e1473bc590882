// What the benchmarks of training steps share: the settings they take and their defaults.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/config_flags.h"
#include "config/run_config.h"
#include "engine/step_timing.h"

namespace cohort::apps {

// Settings that say what a step is, for ConfigFlags.
const std::vector<std::string>& step_settings();

// What a benchmark's settings are when nothing is said.
config::RunConfig bench_defaults();

// `flags` over defaults that suit a benchmark: generated images as the model's usual data set has
// them, whole steps only, enough samples for a few steps of `workers`.
config::RunConfig bench_config(const ConfigFlags& flags);
// Throws ConfigError for a setting that none of `methods` knows.
void check_somebody_uses(const config::RunConfig& config, const std::vector<std::string>& methods);

void size_synthetic_data(config::RunConfig& config, std::int64_t step_samples);

// Of workers whose failures are told as those of training are.
engine::WorkerSetup bench_workers();

// Milliseconds a step and its parts, samples a second, who was late, peak memory.
nlohmann::json timing_json(const config::RunConfig& config, const engine::StepTiming& timing);

// The most memory this process has had so far, in MiB.
double peak_memory_mib();

}  // namespace cohort::apps
