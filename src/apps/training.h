// A run from its settings to its summary, behind `cohort train` and the dialects: joins the job,
// opens the data and the run directory, trains every worker that lives in this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/types.h"
#include "data/registry.h"
#include "engine/progress.h"
#include "launch/job.h"

namespace cohort {

struct TrainRequest {
  std::string name;               // of the run's folder; empty: the next free one
  std::string runs_dir = "runs";  // where it is made
  std::string resume;             // go on with the run in this folder instead
  bool json = false;              // the summary on standard output
  bool quiet = false;             // no progress
  bool wait_for_others = true;    // parameter-server: worker 0 ends when all have
  // --engine tcp: where all processes listen, host:port each, and which of them this one is. Empty:
  // the environment says so.
  std::vector<std::string> addresses;
  int process = 0;
  // Called once the data are open, for settings that follow from how many there are.
  std::function<void(RunConfig&, const DataSplits&)> complete;
  // Instead of the usual display, and the usual intervals between records and evaluations.
  std::function<std::unique_ptr<Progress>(const RunConfig&, Step steps_per_epoch)> make_progress;
  std::function<std::function<bool(Step)>(Step steps_per_epoch)> record_when;
  std::function<std::function<bool(Step)>(Step steps_per_epoch)> evaluate_when;
};

// Throws ConfigError for names that only the registries know, before anything is started.
void check_names(const RunConfig& config);

// This process's part of the job that the configuration asks for; writes the engine and the number
// of workers that were left to us into it. `addresses` and `process` as in TrainRequest. Throws
// ConfigError when it cannot be had so.
std::unique_ptr<Job> join_job(RunConfig& config, const std::vector<std::string>& addresses = {},
                              int process = 0);

// How many parameter servers this process is to start; nothing when --servers says where they are.
// Throws ConfigError when it says neither.
std::optional<int> servers_to_start(const RunConfig& config);

// Throws ConfigError when the method cannot work in such a job.
void check_method_suits(const RunConfig& config, const Job& job);

// Settings that may differ when a run goes on; anything else would make it another run.
const std::vector<std::string>& changeable_on_resume();

// `config` is the whole configuration, also of a run that goes on. `arguments` is the command as
// the user wrote it, for run.json. Returns the exit status; throws what main() reports.
int train(RunConfig config, const TrainRequest& request, const std::vector<std::string>& arguments);

}  // namespace cohort
