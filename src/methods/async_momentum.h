// The momentum of asynchronous updates, where the user names none.
//
// A gradient that arrives after those of P - 1 other workers acts on average like a gradient with
// momentum 1 - 1/P (Mitliagkas, Zhang, Hadjis, Re 2016, "Asynchrony begets momentum"). The usual
// momentum on top of that is too much: along a curvature c a step of rate r is stable below
// r c = 2 (1 + m) with momentum m, but only below 1 - m when every gradient is one update late. So
// the momentum is lowered until both together are the usual one.
#pragma once

#include "methods/method_traits.h"

namespace cohort::methods {

// MethodTraits::adapt of parameter servers: lowers a momentum that nobody gave if updates are
// asynchronous.
Adaptation adapt_momentum(config::RunConfig& config, const IsGiven& is_given);

}  // namespace cohort::methods
