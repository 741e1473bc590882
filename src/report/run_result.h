// What came out of a run, in numbers: a row of the summary.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "report/findings.h"
#include "report/run_records.h"

namespace cohort {

// Accuracies and losses are of the test set, accuracies 0 to 1. Absent: the run does not say.
struct RunResult {
  std::optional<double> last_top1;  // of the last evaluation
  std::optional<double> last_loss;
  std::optional<double> best_top1;    // of any evaluation
  std::optional<double> server_top1;  // of the last version the server dumped
  std::optional<double> server_loss;
  std::optional<double> workers_top1;  // mean of the last models the workers dumped
  std::optional<double> workers_loss;

  std::int64_t test_samples = 0;  // 0: unknown
  double seconds = 0;
  std::optional<double> samples_per_second;  // all workers together
  double megabytes_sent = 0;
  bool finished = false;  // it says so itself; otherwise it is under way or was killed
  bool diverged = false;  // its last loss is not a number

  std::map<Rank, std::vector<Shock>> shocks;  // of the workers' dumps; no empty ones
  std::optional<Freeze> freeze;

  // What the run is judged by: the server's last version, else the last evaluation, else the
  // workers' last models.
  std::optional<double> top1() const;
  std::optional<double> loss() const;

  std::size_t shock_count() const;
};

RunResult result_of(const RunRecords& run);

}  // namespace cohort
