// The few things that all who call MPI here need.
#pragma once

#include <mpi.h>

#include <functional>

#include "core/clock.h"

namespace cohort::collectives {

// Throws PeerError with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// A copy of `communicator` whose errors are return values. Called by all its members; throws
// PeerError when they have not all done so by `deadline`.
MPI_Comm copy_of(MPI_Comm communicator, Deadline deadline);

// Waits for `request`: true when it is complete, false at `deadline` or when `given_up` says so.
// Throws PeerError when MPI reports an error.
bool wait_for(MPI_Request& request, Deadline deadline,
              const std::function<bool()>& given_up = nullptr);

}  // namespace cohort::collectives
