// When a training loss says that the model has lost what it learned.
#pragma once

#include <algorithm>

namespace cohort {

// `far_above_guessing`: a multiple of the loss of guessing. Some models begin worse than by
// guessing, so the first loss counts too, unless it is hopeless itself.
inline double divergence_limit(double far_above_guessing, double first_loss) {
  constexpr double kFarAbove = 4;
  constexpr double kHopeless = 10;
  return std::clamp(kFarAbove * first_loss, far_above_guessing, kHopeless * far_above_guessing);
}

}  // namespace cohort
