// Arithmetic of gossip on flat vectors, in one pass each.
#pragma once

#include <cstddef>
#include <span>

#include "core/simd.h"

namespace cohort::gossip {

// y += a x
COHORT_SIMD_CLONES inline void add_scaled(std::span<float> y, float a, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

// out = a - b
COHORT_SIMD_CLONES inline void subtract(std::span<float> out, std::span<const float> a,
                                        std::span<const float> b) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] - b[i];
}

}  // namespace cohort::gossip
