// Jobs whose processes are all on this host and need no other launcher.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/local_processes.h"

namespace cohort::launch {

struct LocalJobRequest {
  int processes = 1;
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};  // its own: "train", ...
  std::string job = {};                     // the job's name; "": a random one
};

// What stands after `flag` (or after "flag="), the last time; "" when it is not there.
std::string value_in(const std::vector<std::string>& arguments, std::string_view flag);

// The job's processes, that meet at a free port of loopback (RANK, WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT, COHORT_JOB). A `train` that names no engine gets --engine tcp.
std::vector<LocalProcess> local_job(const LocalJobRequest& request);

// How often a process that a signal ended is started again, unless told otherwise.
inline constexpr int kRestarts = 3;

// Where the others go on without a process that is lost.
struct LocalSurvival {
  bool go_on = false;
  int restarts = kRestarts;
  std::vector<std::string> words = {"--rejoin"};  // more for one that is started again
};

// Runs them to their end and returns the exit status of the whole, as launch_status() says. When
// one fails it is named, and the others, which notice that themselves, have 15 s to end; or they go
// on, and the status is 1 when one was not started again.
int run_local_job(const std::vector<LocalProcess>& job, const LocalControl& control,
                  const LocalSurvival& survival = {});

// As a line for a shell.
std::string quoted(const LocalProcess& process);

}  // namespace cohort::launch
