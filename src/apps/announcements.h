// What is said of a run on the error stream: what it trains on, and what it came to.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "config/run_config.h"
#include "data/registry.h"
#include "runs/run_observer.h"

namespace cohort::apps {

// A line about the job on the error stream.
void announce_note(const std::string& line);

// Says on the error stream which data these are, and from where.
void announce_data(const config::RunConfig& config, const data::DataSplits& data);

// Opens the data in --data-dir, or in the usual places, and announces them.
std::unique_ptr<data::DataSplits> open_announced_data(const config::RunConfig& config);

// What is about to be trained, on what, how and where to, on the error stream.
void announce_run(const config::RunConfig& config, std::int64_t parameters,
                  const data::DataSplits& data, const std::filesystem::path& run);

// How to go on; nothing of a run that was not interrupted.
void print_interruption(std::FILE* out, const engine::TrainingOutcome& outcome,
                        const std::filesystem::path& run);
// `workers`: of the whole job.
void print_summary(std::FILE* out, const engine::TrainingOutcome& outcome,
                   const metrics::RunTotals& totals, int workers, const std::filesystem::path& run);

}  // namespace cohort::apps
