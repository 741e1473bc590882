// D-PSGD (Lian et al. 2017, "Can Decentralized Algorithms Outperform Centralized Algorithms?"):
//
//   mixing first    x_i <- sum_j w_ij x_j - eta m_i          as published; hides the exchange
//   stepping first  x_i <- sum_j w_ij (x_j - eta m_j)        the gradient waits for the exchange
//
// Models are sent whole. A lossy compressor would add its error to every mix for ever, so only
// none, fp16 and bf16 are taken. Works on graphs that change. Cost: a model to each neighbour a
// round; one vector beside the parameters.
#pragma once

#include "gossip/algorithm.h"

namespace cohort::gossip {

std::unique_ptr<GossipAlgorithm> make_d_psgd(const GossipOptions& options);

}  // namespace cohort::gossip
