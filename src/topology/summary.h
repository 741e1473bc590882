// A topology in a few numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "topology/topology.h"

namespace cohort::topology {

struct TopologySummary {
  int ranks = 0;
  Step period = 1;
  std::int64_t edges = 0;  // pairs of ranks that mix at some step of the period
  // Neighbours that a rank hears at one step.
  int least_degree = 0;
  int most_degree = 0;
  double mean_degree = 0;
  // Of a whole period (topology/mixing.h). None when there are more ranks than kMaxForSpectrum.
  std::optional<double> gap = {};
  // ||I - W||_2; also none when the graph changes.
  std::optional<double> laplacian_norm = {};
};

inline constexpr int kMaxForSpectrum = 2048;  // some ten seconds

TopologySummary summarise(const Topology& topology);

}  // namespace cohort::topology
