// What came out of a run, in numbers: a row of the summary.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "report/findings.h"
#include "report/run_records.h"

namespace cohort::report {

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
  std::optional<double> samples_per_second;  // all workers together, while they train
  double megabytes_sent = 0;                 // by all workers, payload in steps
  double megabytes_received = 0;             // likewise
  std::optional<double> wire_megabytes_sent;
  double megabytes_outside = 0;  // sent besides: start, evaluations, checkpoints and the like
  int recorded_workers = 0;
  int missing_workers = 0;  // of whom there is no record here
  bool finished = false;    // it says so itself; otherwise it is under way or was killed
  bool diverged = false;    // its last loss is not a number

  std::map<Rank, std::vector<Shock>> shocks;  // of the workers' dumps; no empty ones
  std::optional<Freeze> freeze;

  // What the run is judged by: the server's last version, else the last evaluation, else the
  // workers' last models.
  bool judged_by_dumps() const { return server_top1 || !last_top1; }
  std::optional<double> top1() const;
  std::optional<double> loss() const;

  std::size_t shock_count() const;
};

RunResult result_of(const RunRecords& run);

// When an evaluation first saw at least this accuracy, and what all workers had sent in steps until
// then; absent: none did.
struct Reached {
  std::optional<double> seconds;
  std::optional<double> megabytes;
};
Reached reached_at(const RunRecords& run, double top1);

}  // namespace cohort::report
