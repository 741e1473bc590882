// Sums of several vectors, element by element, in the order given.
#pragma once

#include <cstdint>
#include <span>

namespace cohort {

// out[i] = ((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + ... for i below `count`; the same bits
// on every CPU. `out` may be one of the inputs, but not overlap one otherwise. At least one input.
void sum_in_order(std::span<const float* const> inputs, float* out, std::int64_t count);

// The same, into two places; an input may be one of them.
void sum_in_order(std::span<const float* const> inputs, float* out, float* copy,
                  std::int64_t count);

}  // namespace cohort
