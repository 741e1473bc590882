#include "optimizers/norm.h"

#include <cstddef>

#include "core/simd.h"

namespace cohort::optimizers {
namespace {

// Sixteen running sums, so that the loop vectorises without the compiler reordering additions.
constexpr std::size_t kLanes = 16;

COHORT_SIMD_CLONES
void add_squares(const float* __restrict x, std::size_t groups, double* __restrict lanes) {
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[group * kLanes + lane];
      lanes[lane] += value * value;
    }
  }
}

}  // namespace

double squared_norm(std::span<const float> values) {
  double lanes[kLanes] = {};
  const std::size_t groups = values.size() / kLanes;
  add_squares(values.data(), groups, lanes);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (const float rest : values.subspan(groups * kLanes)) sum += double{rest} * double{rest};
  return sum;
}

}  // namespace cohort::optimizers
