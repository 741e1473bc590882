// DeepSqueeze (Tang et al. 2019, "DeepSqueeze: Decentralization Meets Error-Compensated
// Compression"):
//
//   x <- x - eta m;   v = x + e;   c = Q(v), sent;   e = v - c;
//   x <- x + gamma sum_j w_ij (c_j - c_i)
//
// Whole models are compressed, with error feedback. The gradient waits for the exchange. Works on
// graphs that change. Without compression and with gamma = 1 it is D-PSGD that steps first. Cost:
// one message to each neighbour a round; two vectors beside the parameters.
#pragma once

#include "gossip/algorithm.h"

namespace cohort::gossip {

std::unique_ptr<GossipAlgorithm> make_deep_squeeze(const GossipOptions& options);

}  // namespace cohort::gossip
