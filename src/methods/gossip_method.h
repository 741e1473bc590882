// Gossip: every rank trains a model of its own and mixes it with its neighbours'.
//
//   own optimizer step; every average_every steps a round of the algorithm (gossip/algorithm.h):
//   D-PSGD, CHOCO, DCD, ECD or DeepSqueeze, on any topology, with any compressor that suits
//
// Where the algorithm permits, a round's messages travel while the next gradient is computed. The
// optimizer's state stays with its rank. All ranks begin with the first one's model.
//
// Cost of a round: one message to each neighbour, as long as the compressor makes it, plus 24
// bytes. Alone it is local training.
#pragma once

#include <memory>

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_gossip(const MethodOptions& options);

MethodTraits d_psgd_traits();
MethodTraits choco_traits();
MethodTraits dcd_traits();
MethodTraits ecd_traits();
MethodTraits deep_squeeze_traits();

}  // namespace cohort::methods
