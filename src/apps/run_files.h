// The folder of a run, which the first process keeps, or the one that leads in its place, and where
// a run that goes on stands.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/training.h"
#include "config/run_config.h"
#include "engine/run_directory.h"
#include "engine/worker.h"
#include "storage/checkpoint_store.h"

namespace cohort {

// What only that process has: the run's folder and what is in it.
struct RunFiles {
  RunDirectory run;
  CheckpointStore checkpoints;
  std::optional<LoadedCheckpoint> checkpoint;  // to go on from
  std::vector<std::string> notes;              // for the user
};

// Makes the folder, or opens that of the run that goes on. Throws ConfigError, FileError.
RunFiles open_run(const RunConfig& config, const TrainRequest& request);

// Opens the folder of a run that its first process can no longer keep, where `path` is it: its
// run.json has the id of `document`. Where it is not to be had (another host, or a process that was
// stopped holds it) makes that folder, or one beside it named after `who`, with `document` as its
// run.json; and in the folder for temporary files where nothing can be made there. Throws
// FileError.
RunFiles take_over_run(const std::filesystem::path& path, const std::string& who,
                       const RunConfig& config, const nlohmann::json& document);

// Where the run stands, for all processes; empty when it starts at its beginning. And back.
std::string resume_text(const RunFiles& files, const RunConfig& config);
std::optional<ResumePoint> resume_point_from(const std::string& text);

}  // namespace cohort
