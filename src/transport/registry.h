// All ways to connect ranks, by name. The conformance tests run over this table.
#pragma once

#include <memory>
#include <vector>

#include "core/registry.h"
#include "transport/transport.h"

namespace cohort::transport {

// One transport for each rank of a group that lives in this process, by rank.
struct TransportGroup {
  std::vector<std::unique_ptr<Transport>> members;
};

// Made from the number of ranks.
using TransportRegistry = Registry<TransportGroup, int>;

const TransportRegistry& transports();

}  // namespace cohort::transport
