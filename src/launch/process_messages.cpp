#include "launch/process_messages.h"

#include <algorithm>
#include <utility>

#include "collectives/farewell.h"
#include "core/error.h"
#include "transport/in_process.h"
#include "transport/metered.h"
#include "transport/rank_transport.h"

namespace cohort::launch {
namespace {

constexpr int kMessageLane = transport::kTcpLanes - 1;

std::string place_of(const ProcessPlan& plan, int process) {
  if (plan.hosts.size() == 1) return "";
  for (std::size_t host = 0; host < plan.hosts.size(); ++host) {
    const auto& there = plan.hosts[host];
    if (std::find(there.begin(), there.end(), process) != there.end()) {
      return " on " + plan.names[host];
    }
  }
  return "";
}

transport::TcpLane message_lane(const ProcessPlan& plan) {
  transport::TcpLane lane;
  lane.number = kMessageLane;
  for (int process = 0; process < plan.processes; ++process) lane.members.push_back(process);
  lane.names = process_names(plan);
  return lane;
}

}  // namespace

std::vector<std::string> process_names(const ProcessPlan& plan) {
  std::vector<std::string> names;
  for (int process = 0; process < plan.processes; ++process) {
    names.push_back(list_of(plan.ranks_of(process)) + place_of(plan, process));
  }
  return names;
}

std::vector<std::string> rank_names(const ProcessPlan& plan) {
  std::vector<std::string> names;
  for (int process = 0; process < plan.processes; ++process) {
    const std::string place = place_of(plan, process);
    for (const Rank rank : plan.ranks_of(process)) names.push_back(list_of({rank}) + place);
  }
  return names;
}

void give_messages(std::vector<collectives::Membership>& members,
                   std::vector<std::unique_ptr<transport::Transport>> transports) {
  COHORT_CHECK(members.size() == transports.size(), "one transport for each rank");
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].messages = std::make_unique<transport::MeteredTransport>(std::move(transports[i]));
  }
}

std::vector<std::unique_ptr<transport::Transport>> rank_messages(
    const ProcessPlan& plan, std::unique_ptr<transport::Transport> between) {
  if (plan.processes == 1) return transport::make_in_process_group(plan.local_size);
  if (plan.local_size > 1) {
    const std::vector<int> counts(plan.processes, plan.local_size);
    return transport::make_rank_group(std::move(between), counts, rank_names(plan));
  }
  // A process is its only rank.
  std::vector<std::unique_ptr<transport::Transport>> transports;
  transports.push_back(std::move(between));
  return transports;
}

std::unique_ptr<transport::Transport> connect_messages(
    transport::TcpNode& node, const ProcessPlan& plan,
    const std::vector<network::Address>& addresses, bool returns, Deadline deadline) {
  transport::TcpLane lane = message_lane(plan);
  lane.addresses = addresses;
  lane.returns = returns;
  return node.connect(lane, deadline);
}

std::unique_ptr<transport::TcpTransport> connect_late(transport::TcpNode& node,
                                                      const ProcessPlan& plan) {
  transport::TcpLane lane = message_lane(plan);
  lane.addresses.resize(lane.members.size());
  lane.returns = true;
  lane.late = true;
  return node.connect(lane, Clock::now());  // there is nobody to wait for
}

}  // namespace cohort::launch
