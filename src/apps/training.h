// A run from its settings to its summary, behind `cohort train` and the dialects: joins the job,
// opens the data and the run directory, trains every worker that lives in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/types.h"
#include "engine/progress.h"
#include "launch/job.h"

namespace cohort {

struct TrainRequest {
  std::string name;               // of the run's folder; empty: the next free one
  std::string runs_dir = "runs";  // where it is made
  std::string resume;             // go on with the run in this folder instead
  bool json = false;              // the summary on standard output
  bool quiet = false;             // no progress
  // Instead of the usual display, and the usual interval between records.
  std::function<std::unique_ptr<Progress>(const RunConfig&, Step steps_per_epoch)> make_progress;
  std::function<std::function<bool(Step)>(Step steps_per_epoch)> record_when;
};

// Throws ConfigError for names that only the registries know, before anything is started.
void check_names(const RunConfig& config);

// This process's part of the job that the configuration asks for; writes the engine and the number
// of workers that were left to us into it. Throws ConfigError when it cannot be had so.
std::unique_ptr<Job> join_job(RunConfig& config);

// Throws ConfigError when the method cannot work in such a job.
void check_method_suits(const RunConfig& config, const Job& job);

// Settings that may differ when a run goes on; anything else would make it another run.
const std::vector<std::string>& changeable_on_resume();

// `config` is the whole configuration, also of a run that goes on. `arguments` is the command as
// the user wrote it, for run.json. Returns the exit status; throws what main() reports.
int train(RunConfig config, const TrainRequest& request, const std::vector<std::string>& arguments);

}  // namespace cohort
