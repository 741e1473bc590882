// Which worker owns which samples, when the workers' data are to differ. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace cohort::data {

enum class PartitionKind {
  kNone,       // everyone owns everything
  kRandom,     // equal parts of a random order
  kSorted,     // equal parts of the samples sorted by label: few classes for each worker
  kDirichlet,  // each class divided in proportions drawn from Dirichlet(alpha); parts differ in
               // size
};

// "none", "random", "sorted", "dirichlet"; anything else is a ConfigError listing these.
PartitionKind partition_kind(std::string_view name);
const std::vector<std::string>& partition_names();

// For each worker the indices it owns. Every sample belongs to exactly one worker (kNone: to all),
// every worker owns at least one, and equal parts differ by at most one sample. `alpha` > 0
// matters to kDirichlet alone: small values give each class to few workers, large ones divide it
// evenly. Throws ConfigError when there are fewer samples than workers, or alpha is not positive.
std::vector<std::vector<std::int64_t>> partition(PartitionKind kind,
                                                 std::span<const std::int64_t> labels, int workers,
                                                 double alpha, Seed seed);

}  // namespace cohort::data
