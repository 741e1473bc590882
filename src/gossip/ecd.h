// ECD-PSGD, extrapolation compression (Tang et al. 2018, "Communication Compression for
// Decentralized Training"), in round t = 1, 2, ...:
//
//   x' = sum_j w_ij hat_j - eta m;   z = (1 - t/2) x + (t/2) x';   Q(z), sent;
//   hat_j <- (1 - 2/t) hat_j + (2/t) Q(z_j) for all j;   x <- x'
//
// Of a sparse Q only the elements that were sent move. z grows with t, and with it the error of
// whatever compresses it: only fine, unbiased compressors converge, others diverge as published.
// The exchange hides behind the next gradient. Cost: one message to each neighbour a round; a
// vector for each neighbour and three more beside the parameters.
#pragma once

#include "gossip/algorithm.h"

namespace cohort::gossip {

std::unique_ptr<GossipAlgorithm> make_ecd(const GossipOptions& options);

}  // namespace cohort::gossip
