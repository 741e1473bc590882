// When a training loss says that the model has lost what it learned, or learns nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace cohort {

// The limit for a classifier that has not said yet how it begins.
inline double far_above_guessing(std::size_t classes) {
  constexpr double kFarAbove = 4;
  return kFarAbove * std::log(std::max(2.0, static_cast<double>(classes)));
}

// `above_guessing` as above. Some models begin worse than by
// guessing, so the first loss counts too, unless it is hopeless itself.
inline double divergence_limit(double above_guessing, double first_loss) {
  constexpr double kFarAbove = 4;
  constexpr double kHopeless = 10;
  return std::clamp(kFarAbove * first_loss, above_guessing, kHopeless * above_guessing);
}

// Over a window of many steps: workers that pull each other to nothing, as those of ECD with a
// coarse compressor do, guess for ever.
inline constexpr std::int64_t kStepsToLearn = 300;  // at least, and an epoch
inline bool learned_nothing(double above_guessing, double mean_loss) {
  constexpr double kFarAbove = 4;
  constexpr double kAsGoodAs = 0.99;
  return mean_loss >= kAsGoodAs * above_guessing / kFarAbove;
}

}  // namespace cohort
