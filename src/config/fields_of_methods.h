// A part of the table of settings.
#pragma once

#include <vector>

#include "config/run_config.h"

namespace cohort {

inline constexpr double kMaxCount = 1e15;  // far above any real count, exactly representable
inline constexpr double kAnyNumber = 1e308;

std::vector<ConfigField> fields_of_methods();

}  // namespace cohort
