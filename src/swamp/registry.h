// The policies by which a server keeps the best model.
#pragma once

#include "core/registry.h"
#include "swamp/best_model.h"

namespace cohort::swamp {

// Made with the best model that an earlier server of the job kept, or with an empty record.
using PolicyRegistry = Registry<BestModel, const PolicyOptions&, BestRecord>;

const PolicyRegistry& swamp_policies();

}  // namespace cohort::swamp
