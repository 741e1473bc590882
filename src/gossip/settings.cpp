#include "gossip/settings.h"

#include <utility>

#include "compressors/model_codec.h"
#include "gossip/algorithm.h"
#include "gossip/node.h"

namespace cohort::gossip {

std::shared_ptr<const topology::Topology> make_topology(const GossipSettings& settings, int size) {
  topology::TopologyOptions graph = settings.graph;
  graph.size = size;
  return topology::topologies().make(settings.topology, graph);
}

std::unique_ptr<GossipNode> make_gossip_node(const GossipSettings& settings, Rank rank,
                                             std::shared_ptr<const topology::Topology> topology,
                                             std::vector<Range> tensors,
                                             std::shared_ptr<GossipVectors> vectors) {
  GossipOptions options;
  options.rank = rank;
  for (const Range& tensor : tensors) options.numel += tensor.size;
  options.codec = std::make_shared<compressors::ModelCodec>(
      compressors::compressors().make(settings.compressor, settings.compression),
      std::move(tensors));
  options.vectors = std::move(vectors);
  options.stepsize = settings.stepsize;
  options.estimates_from_zero = settings.estimates_from_zero;
  options.mix_first = settings.overlap;
  options.neighbours = topology->neighbours(rank, 0);
  return std::make_unique<GossipNode>(rank, std::move(topology),
                                      gossip_algorithms().make(settings.method, options));
}

}  // namespace cohort::gossip
