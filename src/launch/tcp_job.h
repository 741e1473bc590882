// A job of processes on one host or many that connect by themselves, without MPI: started by
// `cohort launch --engine tcp`, by torchrun, or by anything that sets RANK, WORLD_SIZE, MASTER_ADDR
// and MASTER_PORT.
//
// Processes of one host exchange through memory that they share; the first process of each host
// exchanges with those of the other hosts over tcp, encrypted by the job's credentials; ranks of
// one process read each other's memory. Levels with one member are left out.
#pragma once

#include <memory>

#include "launch/environment.h"
#include "launch/job.h"

namespace cohort::launch {

// options.workers: 0 for one rank a process, otherwise a multiple of the processes; rank =
// process * (workers / processes) + thread. Throws ConfigError when no meeting point is known, when
// workers and processes do not fit or differ between the processes, when two have the same number,
// or when another host is to be reached without credentials; PeerError that names those who do not
// come within options.start_timeout.
//
// The destructor waits up to 5 s for the other processes, if all is well; after a failure, or
// skip_farewell(), for nobody. Memberships are to be destroyed before the job.
std::unique_ptr<Job> make_tcp_job(const JobOptions& options);

// The same with variables and a folder of the caller's choice (see private_folder()).
std::unique_ptr<Job> make_tcp_job(const JobOptions& options, const Variable& variable,
                                  const std::string& fallback_folder);

}  // namespace cohort::launch
