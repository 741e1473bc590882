// Starting a job's processes with mpirun or srun, behind `cohort launch` and the dialects.
#pragma once

#include "launch/mpirun.h"

namespace cohort {

// Runs the command in the request's processes, passes on Ctrl-C and what they print, explains what
// went wrong, and returns the exit status. `dry_run`: prints the launcher's command only. Throws
// what launch_command() throws.
int run_with_launcher(const LaunchRequest& request, bool dry_run);

}  // namespace cohort
