// The folder of a run, which the first process has, and where a run that goes on stands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/training.h"
#include "config/run_config.h"
#include "engine/run_directory.h"
#include "engine/worker.h"
#include "storage/checkpoint_store.h"

namespace cohort {

// What only the first process has: the run's folder and what is in it.
struct RunFiles {
  RunDirectory run;
  CheckpointStore checkpoints;
  std::optional<LoadedCheckpoint> checkpoint;  // to go on from
  std::vector<std::string> notes;              // for the user
};

// Makes the folder, or opens that of the run that goes on. Throws ConfigError, FileError.
RunFiles open_run(const RunConfig& config, const TrainRequest& request);

// Where the run stands, for all processes; empty when it starts at its beginning. And back.
std::string resume_text(const RunFiles& files, const RunConfig& config);
std::optional<ResumePoint> resume_point_from(const std::string& text);

}  // namespace cohort
