// Scores for the dumped models of runs, behind `cohort eval` and `cohort swamp eval`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "config/run_config.h"
#include "data/dataset.h"
#include "engine/dump_evaluation.h"

namespace cohort::apps {

// In main memory batches of this size are the fastest: what a layer gives is still in the cache
// when the next one takes it.
inline constexpr std::int64_t kDumpBatch = 100;

struct DumpScoringRequest {
  int jobs = 0;                   // models at a time; 0: one for each core
  std::int64_t most_samples = 0;  // DumpEvaluationOptions
  bool delete_models = false;
  bool again = false;    // also those that have a score
  bool progress = true;  // on standard error: a bar on a terminal, else a line now and then
  std::function<void(const storage::FoundDump&, const storage::DumpScore&)> scored =
      {};  // each new score
};

struct DumpScoringReport {
  std::int64_t found = 0;      // dumps, with a model or a score
  std::int64_t had_score = 0;  // and were left alone
  std::int64_t partial = 0;    // of these: of fewer samples than asked for, and without a model
  std::int64_t foreign = 0;    // files among them that are none
  engine::DumpEvaluationReport evaluation = {};
};

// Evaluates what has no score yet, or one of fewer samples, in the run directory `run`, whose
// settings are `config`, on `data`. What is skipped is named on standard error and counted. Ends
// early when a signal came.
DumpScoringReport score_dumps(const std::filesystem::path& run, const config::RunConfig& config,
                              const data::Dataset& data, const DumpScoringRequest& request);

// Deletes the models in `run` that have a score.
void delete_scored_models(const std::filesystem::path& run);

// The best of each worker and of the server, for people; what lies in `run` now.
void print_scores(std::FILE* out, const std::filesystem::path& run);

}  // namespace cohort::apps
