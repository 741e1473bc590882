// A run from its settings to its summary, behind `cohort train` and the dialects: joins the job,
// opens the data and the run directory, trains every worker that lives in this process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/types.h"
#include "data/registry.h"
#include "dialects/flag_names.h"
#include "engine/progress.h"

namespace cohort {

struct TrainRequest {
  std::string name;                    // of the run's folder; empty: the next free one
  std::string runs_dir = "runs";       // where it is made
  std::string resume;                  // go on with the run in this folder instead
  bool rejoin = false;                 // this process was lost, and the others go on,
  std::vector<std::string> rejoin_at;  // perhaps at one of these, or else where they met
  std::vector<std::string> notes;      // to be said when the run begins
  bool json = false;                   // the summary on standard output
  bool quiet = false;                  // no progress
  bool wait_for_others = true;         // methods with servers: worker 0 ends when all have
  std::string dump_root = "dumps";     // where in the run's folder models are dumped
  FlagNames flag_names;                // of a dialect, for what is wrong with the settings
  // --engine tcp: where all processes listen, host:port each, or how many there are (they meet at
  // --meet then), and which of them this one is. Neither: the environment says so.
  std::vector<std::string> addresses;
  int processes = 0;
  int process = 0;
  // Whether the user gave a setting: the method may choose the others. Null: it may not.
  std::function<bool(const std::string& setting)> is_given;
  // Called once the data are open, for settings that follow from how many there are.
  std::function<void(RunConfig&, const DataSplits&)> complete;
  // Instead of the usual display, and the usual intervals between records and evaluations.
  std::function<std::unique_ptr<Progress>(const RunConfig&, Step steps_per_epoch)> make_progress;
  // The same for each worker of this process with a model of its own.
  std::function<std::unique_ptr<Progress>(Rank rank, Step steps_per_epoch)> make_worker_progress;
  // Called when all is checked and the run's folder is about to be made.
  std::function<void()> make_room;
  // Called once the run's folder is there.
  std::function<void(const std::filesystem::path& run)> prepared;
  std::function<std::function<bool(Step)>(Step steps_per_epoch)> record_when;
  std::function<std::function<bool(Step)>(Step steps_per_epoch)> evaluate_when;
};

// `config` is the whole configuration, also of a run that goes on. `arguments` is the command as
// the user wrote it, for run.json. Returns the exit status; throws what main() reports.
int train(RunConfig config, const TrainRequest& request, const std::vector<std::string>& arguments);

}  // namespace cohort
