// All topologies by name. The conformance tests run over this table.
#pragma once

#include <string>

#include "config/part_traits.h"
#include "core/registry.h"
#include "topology/topology.h"

namespace cohort::topology {

struct TopologyOptions {
  int size = 1;      // ranks
  Seed seed = 0;     // of those drawn at random
  int degree = 0;    // neighbours of each rank; 0: the topology's own choice
  std::string file;  // of the edges, for the topology that is read from one
};

// A topology that does not exist for the options throws ConfigError, which says for which numbers
// it does; so does a degree or a file given to one that has no use for it.
using TopologyRegistry = RegistryWithTraits<config::PartTraits, Topology, const TopologyOptions&>;

const TopologyRegistry& topologies();

// Of a graph that becomes another one with so many workers: which, and with how many it would not;
// else "".
std::string remark_on(const std::string& topology, int size);

}  // namespace cohort::topology
