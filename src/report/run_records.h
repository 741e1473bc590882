// What a run directory tells about the course of a run (docs/run_directory.md). The run may still
// be under way, and may have been killed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/run_totals.h"
#include "report/dump_scores.h"

namespace cohort::report {

struct RunRecords {
  std::filesystem::path folder;                           // as it was named
  nlohmann::json description = nlohmann::json::object();  // the whole of run.json
  nlohmann::json summary = nlohmann::json::object();      // empty while the run is under way
  nlohmann::json config = nlohmann::json::object();       // the settings, by name
  std::string begun;                                      // 2025-01-31 12:00 UTC; "": unknown
  std::filesystem::path part_of;  // the first process's run when this is another one's; or empty
  std::vector<metrics::StepRecord> steps;              // one for each rank, in the file's order
  std::vector<metrics::EvaluationRecord> evaluations;  // on evaluated_on(), likewise
  std::vector<metrics::TrafficRecord> traffic;         // outside of steps, likewise
  DumpScores dumps;                                    // its own notes are among those below
  std::vector<std::string> notes;                      // for people: what was skipped, and where

  // The setting as text, whole numbers without decimals; "" when the run does not say.
  std::string setting(const std::string& name) const;

  // The same as the user set it: "auto" where the program found the value.
  std::string asked_setting(const std::string& name) const;

  // What it was evaluated on: "test", or "validation" (of a text, if so asked for).
  std::string evaluated_on() const;

  // Of all workers, from the first record to the last.
  metrics::RunTotals totals() const;

  // What run.json says; else what the records show.
  std::optional<double> steps_per_epoch() const;
};

// Throws ConfigError when `folder` is not a run directory (suggesting those in it, if any), and
// FileError when a file cannot be read or run.json is damaged. Damaged lines of metrics.jsonl and a
// damaged summary.json are skipped and noted, records of kinds unknown here are ignored; that there
// is no record at all is not an error. The records of processes_of() the run are taken together, in
// the order of each one's own time. Where `folder` is that of another process of a job, its records
// alone are taken, and a note says so.
RunRecords read_run(const std::filesystem::path& folder);

// `folder`, and when each worker was a process of its own and this was the first
// (storage/worker_folder.h): those of the other workers, by rank, and of the server. Of the same
// job are those whose run.json has the same "job" and the same settings that all processes have
// alike, so that what an earlier job has left beside it is not taken in. Throws FileError when a
// run.json is damaged.
std::vector<std::filesystem::path> processes_of(const std::filesystem::path& folder);

// Without the folders of workers and servers whose first worker's is there too: each job is one
// run.
std::vector<std::filesystem::path> jobs_among(const std::vector<std::filesystem::path>& folders);

// The same of all: "test or validation" where they differ.
std::string evaluated_on(const std::vector<RunRecords>& runs);

// The runs in a folder, by name: numbers in names count as numbers, so that t2 comes before t10.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

// Each folder that is no run but holds some replaced by those, the others as they are; then
// jobs_among() them.
std::vector<std::filesystem::path> expanded_runs(const std::vector<std::string>& folders);

// Whether `a` comes before `b` when digits in a row are read as one number: t2 before t10, p0.25
// before p0.5. An order of all texts.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace cohort::report
