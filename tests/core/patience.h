// Upper limits of time in tests. Machines are busy, so things may take longer than on a quiet one;
// COHORT_TEST_PATIENCE=1 holds the code to the times as they are written.
#pragma once

#include <cstdlib>

namespace cohort {

inline double patience() {
  const char* set = std::getenv("COHORT_TEST_PATIENCE");
  return set == nullptr ? 10 : std::atof(set);
}

// `limit`: seconds as a number, or a duration.
template <typename Time>
auto patiently(Time limit) {
  return limit * patience();
}

}  // namespace cohort
