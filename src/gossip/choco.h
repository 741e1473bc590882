// CHOCO-SGD (Koloskova, Stich, Jaggi 2019; Koloskova et al. 2020, "Decentralized Deep Learning with
// Arbitrary Communication Compression"):
//
//   x <- x - eta m;   x <- x + gamma sum_j w_ij (hat_j - hat_i);   q = Q(x - hat_i), sent;
//   hat_j <- hat_j + q_j for all j
//
// Estimates start at the model that all ranks begin with, or at zero, as in the papers and the
// authors' code: docs/methods.md has what came of either. Mixing uses the
// estimates of the round before, so the exchange hides behind the next gradient. Differences vanish
// as training settles, so any compressor that contracts will do, with a small enough gamma. Cost:
// one message to each neighbour a round; two vectors beside the parameters.
#pragma once

#include "gossip/algorithm.h"

namespace cohort::gossip {

std::unique_ptr<GossipAlgorithm> make_choco(const GossipOptions& options);

}  // namespace cohort::gossip
