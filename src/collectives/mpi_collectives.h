// Collectives over MPI, for the processes that lead their hosts.
//
// Operations are MPI's non-blocking ones, in pieces of kPieceBytes through a buffer of this object,
// so that nothing of the caller's is in MPI's hands when an operation is given up. Who waits calls
// MPI_Test again and again, then yields, then sleeps for some microseconds in between. Before each
// operation the members compare what they are about to do (one more small exchange): MPI itself
// would take unequal sizes for anything from an answer to a crash.
//
// Cost for P members and S bytes: what the MPI library's algorithms cost, twice S of copying, and
// kPieceBytes of memory.
//
// A member that leaves tells the others so on a communicator of its own. Every quarter of a second
// each tells all others what its ranks are doing; one that is silent for too long is given up, and
// messages quote the last that was heard of it.
//
// MPI must be initialised with MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "core/activity.h"

namespace cohort::collectives {

struct MpiMembers {
  std::vector<std::vector<Rank>> ranks = {};  // by member: those it speaks for
  std::vector<std::string> hosts = {};        // by member
  // What the ranks that this member speaks for are doing, in their order.
  std::vector<std::shared_ptr<Activity>> activities = {};
  std::chrono::milliseconds silence = std::chrono::seconds(6);
  // Asked while this member waits: why its host has failed, or "". May be empty.
  std::function<std::string()> host_failure = nullptr;
};

// What the members of one communicator share beside their channels. May be used from several
// threads.
class MpiLink {
 public:
  virtual ~MpiLink() = default;  // closes

  // Called by all members of `communicator`, which it copies. Throws PeerError when they do not
  // all answer by `deadline`.
  static std::shared_ptr<MpiLink> create(MPI_Comm communicator, MpiMembers members,
                                         Deadline deadline);

  // Called by all members, in the same order. Keeps the link alive.
  virtual std::unique_ptr<Collectives> channel(Deadline deadline) = 0;

  // Why the link has failed, or "". A failed link makes no more calls of MPI, and MPI_Finalize may
  // wait for ever.
  virtual std::string failure() const = 0;

  // Stops listening; no channel works any more. To be called before MPI_Finalize.
  virtual void close() = 0;
};

}  // namespace cohort::collectives
