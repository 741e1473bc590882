// What a figure must leave out.
#pragma once

#include <limits>

namespace cohort::report {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace cohort::report
