// A job of processes of one host that torchrun, or anything that sets its variables, started: each
// with one rank or several as threads, exchanging through memory that they share, without MPI.
//
// Process 0 makes the memory and leaves a notice of it (launch/rendezvous.h), which the others look
// for; once all have come, neither the notice nor the memory has a name any more. The job's key is
// made of MASTER_PORT, TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT, or of what the other
// launchers say; of the parent process only where no launcher says anything. Messages between
// ranks, where they are asked for, take links over loopback.
#pragma once

#include <memory>

#include "launch/environment.h"
#include "launch/job.h"

namespace cohort {

// options.workers: 0 for one rank a process, otherwise a multiple of the processes; rank =
// process * (workers / processes) + thread. Throws ConfigError when no launcher's variables are
// there and workers > 1, when they tell of several hosts, when workers and processes do not fit or
// differ between the processes, or when another job with the same key is just starting; PeerError
// that names those who do not come within options.start_timeout.
//
// The destructor waits up to 5 s for the other processes, if all is well; after a failure, or
// skip_farewell(), for nobody. Memberships are to be destroyed before the job.
std::unique_ptr<Job> make_processes_job(const JobOptions& options);

// The same with variables and a folder of the caller's choice (see private_folder()).
std::unique_ptr<Job> make_processes_job(const JobOptions& options, const Variable& variable,
                                        const std::string& fallback_folder);

}  // namespace cohort
