// A run from its settings to its summary: joins the job, opens the data and the run's folder,
// trains every worker that lives in this process.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/registry.h"
#include "runs/job_choice.h"
#include "runs/run_observer.h"

namespace cohort::runs {

struct RunRequest {
  std::string name;                   // of the run's folder; empty: the next free one
  std::string runs_dir = "runs";      // where it is made
  std::string resume;                 // go on with the run in this folder instead
  JobPlace place = {};                // this process's, where no launcher says so
  bool launched = false;              // by a launcher that started servers, too
  bool wait_for_others = true;        // methods with servers: worker 0 ends when all have
  std::string dump_root = "dumps";    // where in the run's folder models are dumped
  data::SearchPath data_search = {};  // where data sets may be
  // The settings that the user gave: the method may choose the others. Nothing: it may not.
  std::optional<std::set<std::string>> given;
  std::vector<std::string> command = {};  // as the user wrote it, for run.json
};

// `config` is the whole configuration, also of a run that goes on. `stop` ends the run early, from
// any thread or a signal handler; it is also set here when a worker fails that others do not wait
// for. Throws what went wrong;
// messages name our settings, as "--batch".
//
// A worker that hangs when all others have failed cannot be ended: the process ends then, with
// status 1, after a note.
FinishedRun run_job(config::RunConfig config, RunRequest request, RunObserver& observer,
                    std::atomic<bool>& stop);

}  // namespace cohort::runs
