// What a run directory tells about the course of a run (docs/run_directory.md). The run may still
// be under way, and may have been killed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/records.h"

namespace cohort {

struct RunRecords {
  std::filesystem::path folder;                      // as it was named
  nlohmann::json config = nlohmann::json::object();  // the settings, by name
  std::vector<StepRecord> steps;                     // one for each rank, in the file's order
  std::vector<EvaluationRecord> evaluations;         // of the test set, likewise
  std::vector<std::string> notes;                    // for people: what was skipped, and where

  // The setting as text; "" when the run does not say.
  std::string setting(const std::string& name) const;
};

// Throws ConfigError when `folder` is not a run directory (suggesting those in it, if any), and
// FileError when a file cannot be read or run.json is damaged. Damaged lines of metrics.jsonl are
// skipped and noted, records of kinds unknown here are ignored; that there is no record at all is
// not an error.
RunRecords read_run(const std::filesystem::path& folder);

}  // namespace cohort
