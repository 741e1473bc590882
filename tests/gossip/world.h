// All ranks of a group in one thread, with frames carried between them by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compressors/registry.h"
#include "gossip/node.h"
#include "topology/registry.h"

namespace cohort::gossip {

struct WorldOptions {
  std::string algorithm = "choco";
  std::string topology = "ring";
  std::string compressor = "none";
  double ratio = 0.9;
  int bits = 8;
  int size = 8;
  std::int64_t numel = 60;
  double stepsize = 1;
  bool mix_first = true;
  bool estimates_from_zero = false;
};

inline std::vector<Range> test_tensors(std::int64_t numel) {
  return {{0, numel / 3}, {numel / 3, 1}, {numel / 3 + 1, numel - numel / 3 - 1}};
}

class World {
 public:
  // What happens to a frame: how often it arrives.
  using Fate = std::function<int(Rank from, Rank to, const Bytes& frame)>;

  explicit World(const WorldOptions& options) : options_(options) {
    topology::TopologyOptions graph;
    graph.size = options.size;
    graph.seed = 3;
    topology_ = topology::topologies().make(options.topology, graph);
    for (Rank rank = 0; rank < options.size; ++rank) nodes.push_back(make_node(rank));
    x.assign(nodes.size(), std::vector<float>(static_cast<std::size_t>(options.numel)));
    alive.assign(nodes.size(), true);
  }

  const topology::Topology& topology() const { return *topology_; }

  // In the place of one that is lost: knows nothing.
  void make_again(Rank rank) { nodes[static_cast<std::size_t>(rank)] = make_node(rank); }

  void start() {
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->start(x[i]);
  }

  // One round, after each rank changed its x. True when all completed.
  bool round() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (alive[i]) nodes[i]->begin_round(x[i]);
    }
    for (int sweep = 0; sweep < 20 && !all_complete(); ++sweep) {
      carry();
      if (all_complete()) break;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (alive[i] && !nodes[i]->complete()) nodes[i]->ask();
      }
    }
    if (!all_complete()) return false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (alive[i]) nodes[i]->end_round(x[i]);
    }
    return true;
  }

  void carry() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!alive[i]) continue;
        for (const GossipNode::Outgoing& one : nodes[i]->take_outgoing()) {
          moved = true;
          if (!alive[static_cast<std::size_t>(one.to)]) continue;
          const int times = fate ? fate(static_cast<Rank>(i), one.to, *one.frame) : 1;
          for (int t = 0; t < times; ++t) {
            nodes[static_cast<std::size_t>(one.to)]->on_frame(static_cast<Rank>(i), *one.frame);
          }
        }
      }
    }
  }

  bool all_complete() const {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (alive[i] && !nodes[i]->complete()) return false;
    }
    return true;
  }

  std::vector<std::unique_ptr<GossipNode>> nodes;
  std::vector<std::vector<float>> x;
  std::vector<bool> alive;
  Fate fate;

 private:
  std::unique_ptr<GossipNode> make_node(Rank rank) const {
    const compressors::CompressorOptions compressor{
        .seed = 5, .ratio = options_.ratio, .bits = options_.bits, .biased = true};
    GossipOptions gossip;
    gossip.rank = rank;
    gossip.numel = options_.numel;
    gossip.codec = std::make_shared<compressors::ModelCodec>(
        compressors::compressors().make(options_.compressor, compressor),
        test_tensors(options_.numel));
    gossip.stepsize = options_.stepsize;
    gossip.mix_first = options_.mix_first;
    gossip.estimates_from_zero = options_.estimates_from_zero;
    gossip.neighbours = topology_->neighbours(rank, 0);
    return std::make_unique<GossipNode>(rank, topology_,
                                        gossip_algorithms().make(options_.algorithm, gossip));
  }

  WorldOptions options_;
  std::shared_ptr<const topology::Topology> topology_;
};

}  // namespace cohort::gossip
