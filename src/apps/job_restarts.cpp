#include "apps/job_restarts.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/exit_status.h"
#include "engine/run_directory.h"
#include "launch/environment.h"
#include "launch/local_processes_job.h"

namespace cohort::apps {

namespace fs = std::filesystem;

std::optional<fs::path> run_of_job(const fs::path& runs_dir, const std::string& job,
                                   fs::file_time_type since) {
  std::error_code ignored;
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(runs_dir, ignored)) {
    const auto written = fs::last_write_time(entry.path() / "run.json", ignored);
    if (ignored || written < since) continue;
    try {
      if (engine::read_run_json(entry.path()).value("job", "") != job) continue;
    } catch (const Error&) {  // damaged, so not one to go on with
      continue;
    }
    newest = entry.path();
    since = written;
  }
  return newest;
}

std::vector<std::string> arguments_to_resume(const std::vector<std::string>& arguments,
                                             const fs::path& folder) {
  std::vector<std::string> words = {"train", "--resume", folder.string()};
  const std::string engine = launch::value_in(arguments, launch::kEngineFlag);
  if (!engine.empty()) words.insert(words.end(), {std::string(launch::kEngineFlag), engine});
  for (const char* name : {"--quiet", "--json"}) {
    if (std::find(arguments.begin(), arguments.end(), name) != arguments.end()) {
      words.emplace_back(name);
    }
  }
  return words;
}

int run_with_restarts(const JobRestarts& restarts, std::vector<std::string> arguments,
                      const std::function<int(const std::vector<std::string>& arguments)>& run) {
  // File times may be coarser than the clock.
  const auto since = fs::file_time_type::clock::now() - std::chrono::seconds(2);
  const std::string resumed = launch::value_in(arguments, "--resume");
  std::optional<fs::path> folder;
  if (!resumed.empty()) folder = resumed;
  for (int restart = 1;; ++restart) {
    const int status = run(arguments);
    const bool failed =
        status != 0 && status != kExitBadUsage && status != kExitInterrupted && !restarts.stopped();
    if (!failed || restart > restarts.most) return status;
    if (!folder) folder = run_of_job(restarts.runs_dir, restarts.job, since);
    if (folder && resumed.empty()) arguments = arguments_to_resume(arguments, *folder);
    restarts.say(
        "cohort: the job failed; it is started again " +
        (folder ? "and goes on with " + folder->string() : std::string("from its beginning")) +
        " (" + std::to_string(restart) + " of " + std::to_string(restarts.most) + ")\n");
  }
}

}  // namespace cohort::apps
