// Parameter servers: the workers compute gradients, servers keep the parameters and the optimizer.
//
// A worker sends its gradients while backward goes on, layer by layer, and takes the new parameters
// while its next batch is loaded. When a gradient counts is the servers' affair (JobSpec::mode):
// sync (Chen et al. 2016, with backup workers), async (Dean et al. 2012), bounded staleness
// (Ho et al. 2013). Without servers and alone it is plain local training.
//
// Cost for a step of a worker with a model of S bytes: S sent, S received, on all servers together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "methods/server_access.h"
#include "methods/server_log.h"
#include "methods/update_method.h"
#include "server/shard_client.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_server_method(const MethodOptions& options);
MethodTraits server_traits();

// What the servers of a replica's model are told, one for each; fills in what follows from it.
std::vector<server::JobSpec> server_specs(const Replica& replica, const ServerAccess& access,
                                          const server::Layout& layout);
server::Layout server_layout(const Replica& replica, const ServerAccess& access);

// The gradients of each of `workers` behind a model of so many updates, where nobody has counted:
// equal shares.
std::vector<std::uint64_t> shares_of(std::uint64_t updates, server::ServerMode mode, int workers);

// What the servers' models lack of the updates asked for, in words; empty: nothing.
std::string missing_updates(const std::vector<server::ModelProgress>& servers, std::uint64_t asked);

}  // namespace cohort::methods
