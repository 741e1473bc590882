// How the ranks of a job come to send each other messages, whatever runs them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/membership.h"
#include "core/clock.h"
#include "launch/process_ranks.h"
#include "network/address.h"
#include "transport/tcp.h"

namespace cohort::launch {

// What messages call the members: "ranks 2 and 3", with " on node5" where there are several hosts.
std::vector<std::string> process_names(const ProcessPlan& plan);  // by process
std::vector<std::string> rank_names(const ProcessPlan& plan);     // by rank

// Gives each member, in order, its transport, with a meter around it.
void give_messages(std::vector<collectives::Membership>& members,
                   std::vector<std::unique_ptr<transport::Transport>> transports);

// A transport for each rank of this process. `between` has one member a process, and is null where
// this process is alone.
std::vector<std::unique_ptr<transport::Transport>> rank_messages(
    const ProcessPlan& plan, std::unique_ptr<transport::Transport> between);

// One member a process, by links of their own. Called by all processes; `addresses`: where each
// listens, by process; `returns`: one that is lost may come back. Throws as TcpNode::connect().
std::unique_ptr<transport::Transport> connect_messages(
    transport::TcpNode& node, const ProcessPlan& plan,
    const std::vector<network::Address>& addresses, bool returns, Deadline deadline);
// Of a process that comes back, and calls the others later.
std::unique_ptr<transport::TcpTransport> connect_late(transport::TcpNode& node,
                                                      const ProcessPlan& plan);

}  // namespace cohort::launch
