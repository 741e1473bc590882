// The command line of CHOCO-SGD's deep-learning code (epfml/ChocoSGD, dl_code/run.py) in our terms.
//
// It has been two programs: the early one of its published guide and the late one, with other names
// and defaults for the learning rate. All flags are taken; which of the two is meant follows from
// them.
//
// A pure function from flags and a description of the surroundings to a configuration:
// docs/choco.md has the table. Nothing here reads files or the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/choco_flags.h"

namespace cohort::dialects {

enum class ChocoRevision {
  kEarly,  // lr_scheduler, lr_milestones; the rate is scaled by all workers unless told otherwise
  kLate,   // lr_schedule_scheme, lr_change_epochs; by a worker and its neighbours
};

// What the program finds around it.
struct ChocoSurroundings {
  int gpus = 0;
  int processes = 1;  // that mpirun or srun started, this one included
  // The names that the registries have.
  std::vector<std::string> models;
  std::vector<std::string> data_sets;
  std::vector<std::string> topologies;
  std::vector<std::string> engines;
};

// Processes that this one is to start with mpirun, instead of training itself.
struct ChocoLaunch {
  int processes = 1;
  std::string hosts_file;  // empty: this machine
};

struct ChocoTranslation {
  ChocoRevision revision = ChocoRevision::kLate;
  config::RunConfig config;
  std::optional<ChocoLaunch> launch;
  std::string work_dir;  // empty: where the program is
  std::string runs_dir;
  std::string name;    // of the run's folder; empty: the next free one
  std::string resume;  // folder of a run; empty: a new one
  bool evaluate = false;
  bool track_time = false;
  bool display_time = false;
  std::vector<std::string> notes;  // what the user should know, one line each
};

// Which of the two programs the flags are for. `like` is auto, early or late.
ChocoRevision choco_revision(const ChocoFlags& flags, const std::string& like);

// `engine` is auto, or what the workers shall live in. Throws ConfigError in terms of the flags.
ChocoTranslation translate(ChocoFlags flags, const ChocoSurroundings& around,
                           const std::string& like = "auto", const std::string& engine = "auto");

// The rate that the configuration climbs to, when a worker and its neighbours are `neighbourhood`.
double choco_peak_rate(const config::RunConfig& config, int neighbourhood);

}  // namespace cohort::dialects
