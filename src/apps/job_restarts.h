// Starting a job again that cannot go on without a process: from its last checkpoint, as often as
// the user allows.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cohort::apps {

struct JobRestarts {
  int most = 0;
  std::filesystem::path runs_dir = {};  // where the job makes its run
  std::string job = {};                 // "job" of that run.json
  std::function<bool()> stopped;        // whether the user wants it to end
  std::function<void(const std::string&)> say;
};

// The newest run in `runs_dir` whose run.json is of this job and was written after `since`; nothing
// when it has made none.
std::optional<std::filesystem::path> run_of_job(const std::filesystem::path& runs_dir,
                                                const std::string& job,
                                                std::filesystem::file_time_type since);

// What `arguments` of `train` become to go on with the run in `folder`: its settings are in its
// run.json, but for the engine and what is printed.
std::vector<std::string> arguments_to_resume(const std::vector<std::string>& arguments,
                                             const std::filesystem::path& folder);

// Calls `run` with `arguments`, and after a failure again with those that go on with the run, or
// with the same where there is no run yet. Bad usage and an interruption are no failure. Returns
// the last exit status.
int run_with_restarts(const JobRestarts& restarts, std::vector<std::string> arguments,
                      const std::function<int(const std::vector<std::string>& arguments)>& run);

}  // namespace cohort::apps
