#include "collectives/mpi_calls.h"

#include <sched.h>

#include <string>
#include <thread>

#include "core/error.h"

namespace cohort::collectives {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw PeerError(std::string(call) + " failed: " + std::string(text, length));
}

MPI_Comm copy_of(MPI_Comm communicator, Deadline deadline) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(communicator, &copy, &request), "MPI_Comm_idup");
  if (!wait_for(request, deadline)) {
    throw PeerError("not all processes answered while the group was built");
  }
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

bool wait_for(MPI_Request& request, Deadline deadline, const std::function<bool()>& given_up) {
  constexpr int kTests = 200;
  constexpr int kYields = 2000;
  for (int i = 0;; ++i) {
    int complete = 0;
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    if (complete != 0) return true;
    if (i < kTests) continue;
    if (i < kTests + kYields) {
      sched_yield();
    } else {
      // MPI moves data only while it is called.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (i % 16 == 0) {
      if (given_up && given_up()) return false;
      if (Clock::now() >= deadline) return false;
    }
  }
}

}  // namespace cohort::collectives
