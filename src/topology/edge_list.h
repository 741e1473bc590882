// A graph of one's own, from a text file: `edges` in the registry.
//
//     # ranks count from 0
//     0 1
//     1 2
//     2 0
//
// Each line is an edge between two different ranks, in both directions, so it stands there once.
// Without weights each edge gets that of metropolis() (topology/edge_graph.h). With a third number
// on every line, that is the weight: above 0, and those of one rank sum to at most 1; the remainder
// is kept. `#` begins a comment; empty lines do not count.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace cohort::topology {

// Reads the file once; afterwards the topology is as pure as any other. Throws FileError when it
// cannot be read, ConfigError as parse_edge_list() and when `file` is empty.
std::unique_ptr<Topology> make_edge_list(int size, const std::string& file);

// Throws ConfigError, with `file` and the line, for what is not an edge between ranks below `size`,
// loops, edges that stand there twice, weights on some lines only, weights whose sum passes 1,
// ranks that cannot be reached, and weights with which two halves swap their values forever.
std::unique_ptr<Topology> parse_edge_list(int size, std::string_view text, const std::string& file);

}  // namespace cohort::topology
