#include "topology/registry.h"

#include "config/fields.h"
#include "core/error.h"
#include "topology/complete.h"
#include "topology/edge_list.h"
#include "topology/expander.h"
#include "topology/exponential.h"
#include "topology/hypercube.h"
#include "topology/margulis_expander.h"
#include "topology/one_peer_exponential.h"
#include "topology/random_regular.h"
#include "topology/ring.h"
#include "topology/sizes.h"
#include "topology/social.h"
#include "topology/star.h"
#include "topology/torus.h"

namespace cohort::topology {
namespace {

void refuse_degree(const TopologyOptions& options) {
  if (options.degree != 0) {
    throw ConfigError("only random-regular takes a degree; leave it out, or choose that topology");
  }
}

void refuse_file(const TopologyOptions& options) {
  if (!options.file.empty()) {
    throw ConfigError("only the topology edges is read from a file; leave '" + options.file +
                      "' out, or choose that topology");
  }
}

template <std::unique_ptr<Topology> (*kMake)(int)>
std::unique_ptr<Topology> of_size(const TopologyOptions& options) {
  refuse_degree(options);
  refuse_file(options);
  return kMake(options.size);
}

template <class T>
std::unique_ptr<Topology> make(int size) {
  return std::make_unique<T>(size);
}

std::unique_ptr<Topology> random_regular(const TopologyOptions& options) {
  refuse_file(options);
  return make_random_regular(options.size, options.degree, options.seed);
}

std::unique_ptr<Topology> edges(const TopologyOptions& options) {
  refuse_degree(options);
  return make_edge_list(options.size, options.file);
}

config::ConfigField degree_field() {
  return {"topology-degree",
          config::setting_group::kGossip,
          &config::RunConfig::topology_degree,
          "random-regular: neighbours of each worker; 0: its own choice",
          0,
          65536,
          {}};
}

config::ConfigField file_field() {
  return {"topology-file", config::setting_group::kGossip, &config::RunConfig::topology_file,
          "edges: file of lines `i j [weight]`"};
}

}  // namespace

const TopologyRegistry& topologies() {
  static const TopologyRegistry table(
      "topology",
      {
          {"complete", "everybody with everybody", of_size<make<Complete>>},
          {"ring", "each with its left and right", of_size<make<Ring>>},
          {"torus", "a grid whose borders meet", of_size<make_torus>},
          {"expander", "a cycle with inverses modulo a prime n", of_size<make_expander>},
          {"margulis-expander", "Margulis, Gabber, Galil; square n",
           of_size<make_margulis_expander>},
          {"social", "Davis' southern women: 32 ranks, 89 edges", of_size<make_social>},
          {"star", "everybody with rank 0", of_size<make_star>},
          {"hypercube", "numbers that differ in one bit; n a power of two",
           of_size<make_hypercube>},
          {"exponential", "those 1, 2, 4, ... away", of_size<make_exponential>},
          {"one-peer-exponential", "each step another power of two away; one message",
           of_size<make<OnePeerExponential>>},
          {"random-regular",
           "every rank with the same number of random others",
           random_regular,
           {{degree_field()}}},
          {"edges",
           "a graph from a file of lines `i j` or `i j weight`",
           edges,
           {.settings = {file_field()}, .needs = "topology-file"}},
      });
  return table;
}

std::string remark_on(const std::string& topology, int size) {
  if (topology != "torus" || size < 2 || !torus_is_ring(size)) return "";
  const auto is_grid = [](int workers) { return !torus_is_ring(workers); };
  return "a torus of " + std::to_string(size) +
         " workers is the same as a ring; for a grid take a number that is no prime: " +
         nearest_sizes(size, is_grid) + " workers";
}

}  // namespace cohort::topology
