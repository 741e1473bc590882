// This process's part of a job: which ranks live here, and how they reach the others.
//
// A job is started once and its ranks are fixed. Every process of it builds the same kind of Job
// and makes the same calls in the same order.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/membership.h"
#include "core/registry.h"
#include "core/types.h"
#include "network/address.h"
#include "network/credentials.h"

namespace cohort::launch {

// Which part of its job a process is.
struct JobShape {
  int processes = 1;
  int process = 0;               // this one, from 0
  int size = 1;                  // ranks in all processes
  Rank first_rank = 0;           // the ranks from here on, local_size of them,
  int local_size = 1;            // live in this process
  int host_size = 1;             // ranks on this host, those of other processes too
  bool outlives_losses = false;  // the loss of a process leaves the others going
};

class Job {
 public:
  virtual ~Job() = default;

  virtual JobShape shape() const = 0;  // never changes

  // One member a process, for the main thread: before the ranks run and after.
  virtual collectives::Collectives& between_processes() = 0;

  // One membership for each rank that lives here, in order. Called once.
  virtual std::vector<collectives::Membership> join() = 0;

  // What a process that comes back gets to know, the same from all; to be set before join(). In one
  // that came back, what it got.
  virtual void set_rejoin_info(const std::string&) {}
  virtual std::string rejoin_info() const { return {}; }
  // Where the processes were last known to listen.
  virtual std::vector<network::Address> addresses() const { return {}; }

  // The program is about to end, and a launcher that was told to end the job may not wait for a
  // proper farewell: the destructor then waits for nobody.
  virtual void skip_farewell() = 0;
};

struct JobOptions {
  int workers = 0;  // ranks in all; 0: one for each process, or for each GPU where ranks are GPUs
  bool messages = false;  // the ranks also send each other messages (Membership::messages)
  std::optional<int> shared_gpu = {};  // on which all ranks are (threads); nothing: there is none
  // The loss of a process does not end the others, where the engine can do so (tcp, with messages);
  // `returns`: this process was lost and comes back to those who went on.
  bool outlives_losses = false;
  bool returns = false;
  std::vector<network::Address> returns_to = {};  // and may find them there, or else where they met
  // A peer process of which nothing is heard for so long is given up.
  std::chrono::milliseconds silence = std::chrono::seconds(6);
  // Processes of a job wait so long for each other at the start.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);

  // Of jobs whose processes connect by themselves (tcp).
  std::string job = {};   // a name that all processes know; "": COHORT_JOB, or the meeting's
  std::string meet = {};  // where process 0 listens, host:port; "": MASTER_ADDR:MASTER_PORT
  network::Credentials credentials = {};
  std::vector<network::Address> addresses =
      {};             // of all processes, where they are known beforehand; or
  int processes = 0;  // how many there are, where no launcher says so; then
  int process = -1;   // which of them this one is
  std::function<void(const std::string&)> note = nullptr;  // gets lines for people
};

// The engines by name: threads, tcp, and what this build found of mpi and nccl. Throws
// ConfigError when the job cannot be had that way, saying what to change.
using EngineRegistry = Registry<Job, const JobOptions&>;
const EngineRegistry& engines();

// Throws ConfigError when there is no such engine, or when this build left it out.
void check_engine(const std::string& name);

}  // namespace cohort::launch
