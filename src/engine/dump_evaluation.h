// What the dumped models of a run score: each is evaluated once, and its score kept in a file
// beside it, so that an evaluation that was cut short goes on where it stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/dataset.h"
#include "engine/evaluator.h"
#include "storage/dump_files.h"

namespace cohort::engine {

struct DumpEvaluationOptions {
  int jobs = 1;                    // threads, each with a model of its own and one compute thread
  std::int64_t most_samples = 0;   // of the data set, the first so many; 0: all
  std::int64_t usual_samples = 0;  // scores of as many do not say of how many they are
  bool delete_models = false;      // once they are evaluated
  const std::atomic<bool>* stop = nullptr;  // ends between two models
  // After each model, one call at a time, from any thread. `left` models are still to come.
  std::function<void(const storage::FoundDump&, const storage::DumpScore&, std::int64_t left)>
      scored = {};
  std::function<void(const std::string&)> skipped = {};  // why one could not be, likewise
};

struct DumpEvaluationReport {
  std::int64_t evaluated = 0;
  std::int64_t damaged = 0;
  std::int64_t gone = 0;  // deleted meanwhile, by the run itself
  double seconds = 0;     // of all of it, without reading the data
};

// Evaluates all `dumps`, in their order, on `data` (no augmentation). `config` is the run's. Throws
// FileError when a score cannot be written.
DumpEvaluationReport evaluate_dumps(const config::RunConfig& config, const data::Dataset& data,
                                    const std::vector<storage::FoundDump>& dumps,
                                    const DumpEvaluationOptions& options);

}  // namespace cohort::engine
