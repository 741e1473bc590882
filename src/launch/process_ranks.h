// Jobs of several processes, whatever connects them: who runs where, and how the ranks of one
// process, which are its threads, come to have collectives with all ranks.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/hierarchical.h"
#include "collectives/membership.h"
#include "collectives/process_shared.h"
#include "core/activity.h"
#include "launch/job.h"

namespace cohort::launch {

// The channels between processes.
enum GroupChannel : int { kControl, kGradients, kMain, kChannels };

// Who runs where, as every process knows it.
struct ProcessPlan {
  int processes = 1;
  int process = 0;
  int local_size = 1;                              // ranks a process
  collectives::GroupTable hosts = {{0}};           // by host: its processes
  std::vector<std::string> names = {"this host"};  // by host
  int host = 0;                                    // this process's
  int host_index = 0;                              // of this process in it

  int size() const { return processes * local_size; }
  Rank first_rank() const { return process * local_size; }
  int host_size() const { return static_cast<int>(neighbours().size()) * local_size; }
  bool leads() const { return host_index == 0; }
  std::vector<Rank> ranks_of(int some_process) const;
  const std::vector<Rank>& neighbours() const { return hosts[host]; }

  // What the processes of this host share.
  collectives::ProcessGroup host_group(std::chrono::milliseconds silence) const;
};

JobShape shape_of(const ProcessPlan& plan);

// How many ranks each process has; `workers` 0: one. Throws ConfigError when they cannot be shared
// out evenly.
int ranks_per_process(int workers, int processes);

// Whether anything went wrong in the job, for its end.
using FailureFlag = std::shared_ptr<std::atomic<bool>>;

// Of a process that is alone.
std::unique_ptr<collectives::Collectives> lone_group(const ProcessPlan& plan);

// The same collectives, noting in `failed` when an operation throws or the member leaves.
std::unique_ptr<collectives::Collectives> note_failures(
    std::unique_ptr<collectives::Collectives> collectives, FailureFlag failed);

// Where each rank of this process says what it does: in the memory that processes share, or, where
// `shared` is null, in this process's own.
std::vector<std::shared_ptr<Activity>> activities_of(
    const ProcessPlan& plan, const std::shared_ptr<collectives::ProcessShared>& shared);

// One for each rank of this process, in order, with the rank's members of both channels.
std::vector<collectives::Membership> members_of(
    const ProcessPlan& plan, const std::vector<std::shared_ptr<Activity>>& activities,
    std::vector<std::unique_ptr<collectives::Collectives>> control,
    std::vector<std::unique_ptr<collectives::Collectives>> gradients);

// The same, noting failures in `failed`. `between` makes this process's member of a channel,
// and is called once for each of control and gradients, unless the process is alone and has several
// ranks.
std::vector<collectives::Membership> join_processes(
    const ProcessPlan& plan, const std::vector<std::shared_ptr<Activity>>& activities,
    const std::function<std::unique_ptr<collectives::Collectives>(GroupChannel)>& between,
    const FailureFlag& failed);

}  // namespace cohort::launch
