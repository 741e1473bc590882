// Starting a job's processes with mpirun or srun, behind `cohort launch` and the dialects.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launch/mpirun.h"

namespace cohort::apps {

// Runs the command in the request's processes, passes on Ctrl-C and what they print, explains what
// went wrong, and returns the exit status. `dry_run`: prints the launcher's command only. Throws
// what launch_command() throws.
int run_with_launcher(const launch::LaunchRequest& request, bool dry_run);

// Puts `--` before the command of `launch -n 2 train --lr 1`, whose flags are not ours. `words` is
// all that follows the program's name. Throws ConfigError for a command that cannot be launched,
// and says what is missing where -n or the command is.
void mark_launched_command(const CLI::App& program, std::vector<std::string>& words);

}  // namespace cohort::apps
