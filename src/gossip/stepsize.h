// Which consensus step size gamma gossip with compressed differences (CHOCO) should have.
//
// It depends on the graph and on the compressor: too large and the workers drift apart, too small
// and they hardly mix. Theory gives a safe value, hundreds of times smaller than the best; so the
// best is found by trying, on vectors that nobody trains:
//
//     x_i    <- x_i + push_i + gamma sum_j w_ij (xhat_j - xhat_i)
//     xhat_i <- xhat_i + Q(x_i - xhat_i)
//
// which is the exchange of CHOCO (Koloskova, Lin, Stich, Jaggi 2020) with random pushes in place of
// gradients. Deterministic: the same arguments give the same gamma on every machine.
#pragma once

#include <vector>

#include "compressors/compressor.h"
#include "topology/mixing.h"
#include "topology/topology.h"

namespace cohort::gossip {

// gamma = rho^2 delta / (16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta), with the spectral
// gap rho and beta = ||I - W|| of a symmetric W, and delta the compressor's contraction: proved to
// converge (Koloskova, Stich, Jaggi 2019, theorem 2). 0 for delta 0.
double theoretical_stepsize(const topology::Matrix& mixing, double delta);

enum class StepsizeGoal {
  // All start at 0 and each is pushed by Gaussian noise before every exchange: the gamma that keeps
  // them closest together, as in training.
  kTracking,
  // Nobody is pushed; they start apart, and the gamma counts with which they come closest: the
  // tuner of the authors' code. Erratic for sign, whose last differences sit in few elements.
  kConsensus,
};

struct StepsizeSearch {
  StepsizeGoal goal = StepsizeGoal::kTracking;
  int dimension = 1000;  // elements of each worker's vector, compressed as one tensor
  int iterations = 500;  // exchanges that a gamma which is not given up goes through
  int grid = 20;         // gammas tried first, spaced evenly on a logarithmic scale up to 1
  double smallest = 1e-3;
  int refinements = 8;  // more gammas, around the best of the grid (golden section)
  Seed seed = 0;        // of the vectors
};

struct StepsizeTrial {
  double gamma = 0;
  int iterations = 0;  // how far it came before it was done or given up
  // Distance to the mean, infinite if it diverged. kTracking: root mean square of an element over
  // the second half of the iterations, in units of a push's. kConsensus: at the end, as a share of
  // that at the beginning.
  double error = 0;
  // kConsensus: by what an exchange multiplies the distance, on average over them all; else 0.
  double rate = 0;
  bool diverged = false;
  bool finished = false;  // went through all iterations, or became equal; only such compete
};

struct StepsizeResult {
  double gamma = 0;  // in (0, 1]; 0 when the workers drift apart with every gamma tried
  double error = 0;  // of that gamma, as in its trial
  double rate = 0;
  std::vector<StepsizeTrial> tried;  // ascending by gamma
};

// The original takes each gamma of its grid to the end. Here those that diverge stop at once, the
// worse half stops after an eighth, a quarter and half of the iterations, and those whose vectors
// have become equal are done; the best is then refined. About n * dimension * iterations * 15
// element updates in all: less than a second for 8 workers.
//
// Throws ConfigError when the topology changes with the step, for which CHOCO does not exist, and
// for numbers below 1.
StepsizeResult tune_stepsize(const topology::Topology& topology,
                             compressors::Compressor& compressor, const StepsizeSearch& search);

}  // namespace cohort::gossip
