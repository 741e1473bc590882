// What a run is and what it came to, for people and for programs.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/run_config.h"
#include "data/registry.h"
#include "engine/trainer.h"
#include "metrics/run_totals.h"

namespace cohort::runs {

// "rank 1 held the others up 48.0 ms a step (19% of the time), by its data": the one worker that
// others wait for in most of `steps`, if that costs anything worth a word; else "".
std::string late_text(const std::vector<methods::Lateness>& late, Step steps, double seconds);

// The content of summary.json. `totals`: of this sitting's records.
nlohmann::json summarize(const engine::TrainingOutcome& outcome, const metrics::RunTotals& totals,
                         const std::filesystem::path& run);

// The setting that says how long a run goes on: "--epochs" or "--iterations".
std::string length_flag(const config::RunConfig& config);

// For a run that had nothing left to do when it was resumed: why, and how to go on nevertheless.
std::string already_done_text(const engine::TrainingOutcome& outcome,
                              const config::RunConfig& config, const std::string& run);

}  // namespace cohort::runs
