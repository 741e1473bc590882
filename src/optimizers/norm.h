// The Euclidean length of a vector, for clipping.
#pragma once

#include <span>

namespace cohort::optimizers {

// Sum of squares in double precision, in a fixed order: the same bits however it is vectorised.
double squared_norm(std::span<const float> values);

}  // namespace cohort::optimizers
