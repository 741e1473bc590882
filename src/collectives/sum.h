// Sums of several vectors, element by element, in the order given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::collectives {

// out[i] = ((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + ... for i below `count`; the same bits
// on every CPU. `out` may be one of the inputs, but not overlap one otherwise. At least one input.
void sum_in_order(std::span<const float* const> inputs, float* out, std::int64_t count);

// The same, into two places; an input may be one of them.
void sum_in_order(std::span<const float* const> inputs, float* out, float* copy,
                  std::int64_t count);

// Copies to memory past the caches, for another core to read: between cores that share no cache,
// what lies in a cache of the writer takes the reader longer than what lies in memory. What was
// written is visible to others before anything that is written afterwards.
void copy_past_caches(const float* from, float* to, std::int64_t count);

// sum_in_order() past the caches into `out`, which may be one of the inputs.
void sum_past_caches(std::span<const float* const> inputs, float* out, std::int64_t count);

// sum_in_order() into `out`, and past the caches into `copy`.
void sum_past_caches(std::span<const float* const> inputs, float* out, float* copy,
                     std::int64_t count);

}  // namespace cohort::collectives
