// How processes that connect by themselves find each other: process 0 listens at an address that
// all know; every process listens at one of its own and says so in its greeting to process 0, which
// tells all.
//
// Any order of starts will do. Who waits says for whom, after some seconds and at its deadline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "launch/environment.h"
#include "launch/job.h"
#include "network/address.h"
#include "network/identity.h"
#include "transport/tcp.h"

namespace cohort::launch {

// What a process knows before it has spoken to any other.
struct BootstrapPlan {
  int processes = 1;
  int process = 0;
  std::string source = {};       // who told: "torchrun", "Open MPI", ... or "" where nobody did
  network::Address meet = {};    // where process 0 listens
  network::Address listen = {};  // where this one does; port 0: a free one
  network::JobId job = {};
};

// From the options, or else from the launcher's variables. `meet` is JobOptions.meet, or
// MASTER_ADDR (loopback where all are on this host) and MASTER_PORT (the next port where torchrun
// keeps that one for itself). Others than process 0 listen at the address of this host from which
// they reach it; on loopback when that is loopback. Throws ConfigError when that is not known, or
// cannot serve several hosts; PeerError when this host has no way there.
BootstrapPlan plan_bootstrap(const JobOptions& options, const Variable& variable);

class Bootstrap {
 public:
  // Waits for all processes. `agreement`: "4 processes and 8 workers"; who counts otherwise is
  // refused. `introduction`: any text, for all others. Throws PeerError that names who did not
  // come, ConfigError when this process is refused.
  Bootstrap(transport::TcpNode& node, const BootstrapPlan& plan, const std::string& agreement,
            const std::string& introduction, const std::function<void(const std::string&)>& note,
            Deadline deadline);

  const std::vector<std::string>& introductions() const { return introductions_; }  // by process

  // What each process contributed, by process. All call it equally often.
  std::vector<std::string> exchange(const std::string& own, Deadline deadline);

 private:
  std::vector<std::string> tell_all(const std::vector<std::string>& said, Deadline deadline);

  std::unique_ptr<transport::TcpTransport> star_;
  std::vector<std::string> introductions_;
  transport::Tag round_ = 0;
};

// What two processes have in common exactly when they can share memory and see each other's
// numbers; COHORT_HOST instead, where it is set.
std::string host_identity(const Variable& variable);
std::string host_name(const Variable& variable);  // for messages

}  // namespace cohort::launch
