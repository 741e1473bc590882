// DCD-PSGD, difference compression (Tang et al. 2018, "Communication Compression for Decentralized
// Training"):
//
//   y = sum_j w_ij x_j - eta m;   q = Q(y - x_i), sent;   x_j <- x_j + q_j for all j
//
// The model itself is only what the neighbours know of it, so a coarse compressor makes it diverge;
// unbiased and fine ones work. Without compression it is D-PSGD that mixes first. The exchange
// hides behind the next gradient. Cost: one message to each neighbour a round; two vectors beside
// the parameters.
#pragma once

#include "gossip/algorithm.h"

namespace cohort::gossip {

std::unique_ptr<GossipAlgorithm> make_dcd(const GossipOptions& options);

}  // namespace cohort::gossip
