// The folder of a run, which the first process keeps, or the one that leads in its place, and where
// a run that goes on stands.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "engine/run_directory.h"
#include "engine/worker.h"
#include "runs/run.h"
#include "storage/checkpoint_store.h"

namespace cohort::runs {

// So that the run can be repeated and evaluated from anywhere.
void make_paths_absolute(config::RunConfig& config);

// What only that process has: the run's folder and what is in it.
struct RunFiles {
  engine::RunDirectory run;
  storage::CheckpointStore checkpoints;
  std::optional<storage::LoadedCheckpoint> checkpoint;  // to go on from
  std::vector<std::string> notes;                       // for the user
};

// The run that worker `rank` goes on with when a job's, or one of its workers', is given: where
// each worker is a process of its own, each has a folder (storage/worker_folder.h). `run` itself
// where `rank` is negative. Throws ConfigError when it is none.
std::filesystem::path own_run(const std::filesystem::path& run, std::int64_t rank);

// `request`, for worker `rank` of such a job: its name or the run that goes on are its own. Throws
// ConfigError likewise.
RunRequest own_request(RunRequest request, std::int64_t rank);

// For "job" in run.json: what tells the folders of a job from those of another one with the same
// settings. Empty where nobody named the job (--job, or cohort launch, which gives
// each job a random name).
std::string job_identity(const config::RunConfig& config);

// Makes the folder with `run_json` in it, or opens that of the run that goes on. A worker that is a
// process of its own, and is given no name, is named after the first one's folder. Throws
// ConfigError, FileError.
RunFiles open_run_files(const config::RunConfig& config, const RunRequest& request,
                        const nlohmann::json& run_json);

// Opens the folder of a run that its first process can no longer keep, where `path` is it: its
// run.json has the id of `document`. Where it is not to be had (another host, or a process that was
// stopped holds it) makes that folder, or one beside it named after `who`, with `document` as its
// run.json; and in the folder for temporary files where nothing can be made there. Throws
// FileError.
RunFiles take_over_run(const std::filesystem::path& path, const std::string& who,
                       const config::RunConfig& config, const nlohmann::json& document);

// Where the run stands, for all processes; empty when it starts at its beginning. And back.
std::string resume_text(const RunFiles& files, const config::RunConfig& config);
std::optional<engine::ResumePoint> resume_point_from(const std::string& text);

// Host, CPU, cores, versions: what a reader of run.json needs to place its figures.
nlohmann::json describe_host();

// The run.json of a run that begins. `asked`: the settings before any was found out.
nlohmann::json run_document(const config::RunConfig& config, const nlohmann::json& asked,
                            const models::Model& model, const data::DataSplits& data,
                            const std::vector<std::string>& arguments);
// Of one that goes on: its first command stays, the data must be the same.
nlohmann::json resumed_document(const std::string& run, const config::RunConfig& config,
                                const data::DataSplits& data,
                                const std::vector<std::string>& arguments);

// Settings that may differ when a run goes on; anything else would make it another run.
const std::vector<std::string>& changeable_on_resume();
bool may_change_on_resume(const std::string& setting);

// Those of `asked` that differ from those of the run that is to go on, though they may not.
struct ChangedSetting {
  std::string name;
  std::string was;
  std::string now;
};
std::vector<ChangedSetting> forbidden_changes(const config::RunConfig& before,
                                              config::RunConfig asked);

}  // namespace cohort::runs
