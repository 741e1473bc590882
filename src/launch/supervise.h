// Runs the launcher as a child and stands between it and the terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::launch {

struct Supervision {
  std::function<void(std::string_view)> errors;  // gets what the child writes to its error stream
  std::function<int()> stops;                    // stop requests so far; asked every 50 ms
};

// Runs `command` (the first word is a path) to its end and returns its exit status, 128 + n when
// signal n ended it. Its output is ours, its input empty. It has a process group of its own, so
// that Ctrl-C reaches only us: the first stop request becomes SIGUSR1, which launchers pass on to
// all processes of the job, and which asks them to save and end; not before 2 s after the start,
// when they can take it. The second becomes SIGTERM, which ends the job at once; a child that is
// still there 10 s later is killed. Should this process be killed, the child gets SIGTERM. Throws
// RunError when the child cannot be started.
int supervise(const std::vector<std::string>& command, const Supervision& supervision);

// The exit status of the whole: 0 done, 2 bad usage and 130 interrupted are what the job's
// processes say; everything else is 1. `stops` as above: a job that was ended by our own signals
// was interrupted.
int launch_status(int status, int stops);

}  // namespace cohort::launch
