// All topologies by name. The conformance tests run over this table.
#pragma once

#include "core/registry.h"
#include "topology/topology.h"

namespace cohort {

// Made from the number of ranks; a topology that does not exist for it throws ConfigError, which
// says for which numbers it does.
using TopologyRegistry = Registry<Topology, int>;

const TopologyRegistry& topologies();

}  // namespace cohort
