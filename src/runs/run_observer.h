// What stands between a run and the program that started it: what the program may still choose, and
// what it is told. By default it chooses nothing and shows nothing.
//
// Called from the thread that called run_job(), unless said otherwise.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "data/registry.h"
#include "engine/progress.h"
#include "engine/trainer_parts.h"
#include "metrics/run_totals.h"
#include "swamp/swamp_report.h"

namespace cohort::runs {

// A run whose folder has been opened, in the process that keeps it.
struct OpenedRun {
  const config::RunConfig& config;
  const data::DataSplits& data;
  std::int64_t parameters;  // of the model
  const std::filesystem::path& path;
};

// A worker of this process that is about to train.
struct WorkerSeat {
  const config::RunConfig& config;
  Rank rank;
  Step steps_per_epoch;
  const metrics::TotalsSink*
      totals;  // of the run, where this worker's process keeps it and it tells of all
};

// What is shown of a worker, and after which steps: the latter is the same for all workers.
struct WorkerView {
  std::unique_ptr<engine::Progress> progress = engine::make_silent_progress();
  engine::DueSteps due = {};
};

struct FinishedRun {
  config::RunConfig config;         // with everything that was found out
  engine::TrainingOutcome outcome;  // of this process's first worker
  std::filesystem::path path;       // the run's folder; empty: another process keeps it
  metrics::RunTotals totals;        // of what it recorded
  nlohmann::json summary;           // what summary.json holds
  std::optional<swamp::SwampReport> swamp;
  bool had_nothing_to_do = false;  // a run that was resumed when it had finished
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Settings that follow from how many samples there are.
  virtual void data_opened(config::RunConfig&, const data::DataSplits&) {}
  // All is checked; a folder of the run's name may still be there.
  virtual void make_room() {}
  virtual void opened(const OpenedRun&) {}
  // From now on workers end as soon as they can when they are asked to stop.
  virtual void workers_start() {}
  // From the worker's thread.
  virtual WorkerView view(const WorkerSeat&) { return {}; }
  // A line for people who look at no progress either. From any thread.
  virtual void note(const std::string&) {}
  // In the process that keeps the run: all is written.
  virtual void finished(const FinishedRun&) {}
};

}  // namespace cohort::runs
