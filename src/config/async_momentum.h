// The momentum of asynchronous updates, where the user names none.
//
// A gradient that arrives after those of P - 1 other workers acts on average like a gradient with
// momentum 1 - 1/P (Mitliagkas, Zhang, Hadjis, Re 2016, "Asynchrony begets momentum"). The usual
// momentum on top of that is too much: along a curvature c a step of rate r is stable below
// r c = 2 (1 + m) with momentum m, but only below 1 - m when every gradient is one update late. So
// the momentum is lowered until both together are the usual one.
#pragma once

#include <string>

#include "config/run_config.h"

namespace cohort {

// Lowers config.momentum if updates are asynchronous. Returns a line that says so; empty: nothing
// was changed. `config.workers` is known.
std::string adapt_momentum(RunConfig& config);

}  // namespace cohort
