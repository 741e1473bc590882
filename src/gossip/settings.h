// What a run says about gossip, and the parts made of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compressors/registry.h"
#include "topology/registry.h"

namespace cohort::gossip {

class GossipNode;     // node.h
class GossipVectors;  // vectors.h

struct GossipSettings {
  std::string method = "choco";
  std::string topology = "ring";
  topology::TopologyOptions graph = {};  // but for the size
  std::string compressor = "none";
  compressors::CompressorOptions compression = {};
  double stepsize = 1;
  bool estimates_from_zero = false;
  bool overlap = true;  // the exchange may go on while the next gradient is computed
};

// Throws ConfigError when there is none for so many ranks.
std::shared_ptr<const topology::Topology> make_topology(const GossipSettings& settings, int size);

// `tensors` tile the flat vector of parameters. `vectors` null: in main memory. Throws ConfigError
// when the parts do not fit.
std::unique_ptr<GossipNode> make_gossip_node(const GossipSettings& settings, Rank rank,
                                             std::shared_ptr<const topology::Topology> topology,
                                             std::vector<Range> tensors,
                                             std::shared_ptr<GossipVectors> vectors = nullptr);

}  // namespace cohort::gossip
