// All collectives by name. The conformance tests run over this table.
#pragma once

#include <memory>
#include <vector>

#include "collectives/collectives.h"
#include "core/registry.h"

namespace cohort::collectives {

// One object for each rank of a group that lives in this process, by rank.
struct CollectivesGroup {
  std::vector<std::unique_ptr<Collectives>> members;
};

// Made from the number of ranks.
using CollectivesRegistry = Registry<CollectivesGroup, int>;

const CollectivesRegistry& collectives();

}  // namespace cohort::collectives
