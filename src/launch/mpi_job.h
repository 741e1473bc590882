// A job of MPI processes, started by mpirun or srun, each with one rank or several as threads.
//
// Processes of one host exchange through memory that they share; the first process of each host
// exchanges with those of the other hosts by MPI; ranks of one process read each other's memory.
// Levels with one member are left out.
#pragma once

#include <memory>
#include <span>

#include "launch/job.h"

namespace cohort::launch {

// options.workers: 0 for one rank a process, otherwise a multiple of the processes; rank =
// process * (workers / processes) + thread. Initialises MPI unless that is done. Throws ConfigError
// when the program was not started by mpirun or srun and one process is not enough, when workers
// and processes do not fit, or when MPI does not allow several threads; PeerError when not all
// processes come within options.start_timeout.
//
// `processes_per_host`, for tests: so many neighbours count as a host; 0: what MPI says.
//
// The destructor waits for the other processes and ends MPI, if all is well. After a failure it
// does not: MPI's own end would wait for the lost ones. The program then ends by
// end_if_mpi_is_unfinished(). Memberships are to be destroyed before the job.
std::unique_ptr<Job> make_mpi_job(const JobOptions& options, int processes_per_host);
std::unique_ptr<Job> make_mpi_job(const JobOptions& options);

// MPI_Allreduce itself over all processes, to compare with: sums `values` in place. Has no
// deadline. MPI must be initialised.
void plain_mpi_all_reduce(std::span<float> values);

// For the end of main(), with its exit status. Returns when MPI was never begun or was ended as it
// should. Otherwise, after a failure, writes out what standard output and error hold and ends the
// process at once, without the exit handlers of the MPI library, which might wait.
void end_if_mpi_is_unfinished(int status);

}  // namespace cohort::launch
