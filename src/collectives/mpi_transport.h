// Messages over MPI, between the processes of a communicator.
//
// One thread takes what comes, and sees to it that what was sent gets away; MPI moves data only
// while it is called. It looks without pause while there is something to do, then every 100 us, and
// after a tenth of a second without anything every 500 us. send() copies a message; of a long one
// it returns when MPI has it all, so that what waits for a slow peer is bounded. Messages longer
// than a piece are cut and put together again.
//
// Every quarter of a second each tells all others that it is there. One of which nothing was heard
// for too long is lost, and only that one, as far as MPI goes on: most launchers end the whole job
// when a process dies.
//
// MPI must be initialised with MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "transport/transport.h"

namespace cohort::collectives {

struct MpiTransportOptions {
  std::vector<std::string> names = {};  // by process, for messages; "rank 3" where there is none
  std::chrono::milliseconds silence = std::chrono::seconds(6);
  std::size_t piece_bytes = std::size_t{1} << 28;  // at most 2^31 - 17
};

// Called by all members of `communicator`, which it copies. Throws PeerError when they do not all
// answer by `deadline`.
//
// The destructor waits up to 2 s until nothing is on its way any more from or to the others,
// however long these go on with each other. To be destroyed before MPI_Finalize.
std::unique_ptr<transport::Transport> make_mpi_transport(MPI_Comm communicator,
                                                         const MpiTransportOptions& options,
                                                         Deadline deadline);

}  // namespace cohort::collectives
