// Collectives between processes of one host, through memory that they share.
//
// Every process is one member. all_reduce of S bytes over P processes, each sum in the order 0, 1,
// ..., P - 1, so that all get the same bits, and those of the collectives between threads:
//   up to 16 KiB   Each copies its input to its slot, sees that all have, and sums all slots.
//   longer         In chunks of 512 KiB: each copies what others will sum into its slot; member r
//                  sums the r-th part of the chunk over all slots into its buffer and into the
//                  result; all copy the other parts out. Two of everything, so that the members
//                  meet once a chunk and once more. Each reads S bytes of its buffer and writes S;
//                  2 (P - 1)/P S go to the shared memory from each, and as many from it.
//   from 128 KiB   That, writing through the caches or past them, or, from 2 MiB and where the
//                  system lets processes of one user read each other's memory, straight from buffer
//                  to buffer: member r sums the r-th part, reading the others' by blocks; then each
//                  reads the other parts; three barriers. Which is quickest depends on the machine
//                  and is found out by trying; member 0 decides for all.
// all_gather and broadcast go through the slots in chunks and meet once a chunk; barrier meets
// once. The mapping takes about P + 1 MiB a channel.
//
// Who waits looks and yields briefly and then sleeps. A process that is killed or stopped, or whose
// member leaves, wakes all the others, whose operations end with PeerError that names its ranks and
// what they were doing. Each operation also ends at its deadline.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "core/activity.h"

namespace cohort::collectives {

// Who shares; the same in every process.
struct ProcessGroup {
  std::vector<std::vector<Rank>> ranks = {};  // by process: the ranks that live in it, one or more
  int channels = 1;                           // groups of collectives that go on independently
  std::chrono::milliseconds silence = std::chrono::seconds(6);  // stopped after so long
};

// This process's view of what the group shares. May be used from several threads.
class ProcessShared {
 public:
  virtual ~ProcessShared() = default;

  // Makes the memory. The caller gives name() to the other processes, which open() it.
  static std::shared_ptr<ProcessShared> create(const ProcessGroup& group, int own);
  static std::shared_ptr<ProcessShared> open(const std::string& name, const ProcessGroup& group,
                                             int own);

  virtual const std::string& name() const = 0;

  // Returns when all processes have come; PeerError names those that have not by `deadline`. The
  // maker's call then takes the name away, so that nothing is left behind however the job ends.
  virtual void wait_for_all(Deadline deadline) = 0;

  // This process's member of a channel, made once each. Keeps the memory alive.
  virtual std::unique_ptr<Collectives> channel(int index) = 0;

  // Where the index-th rank of a process says what it does. Keeps the memory alive.
  virtual std::shared_ptr<Activity> activity(int process, int index) = 0;

  // Why a channel has failed, or "". A member that was destroyed is no failure.
  virtual std::string failure(int channel) const = 0;
};

}  // namespace cohort::collectives
