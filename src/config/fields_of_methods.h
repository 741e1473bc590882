// A part of the table of settings.
#pragma once

#include <vector>

#include "config/run_config.h"

namespace cohort {

std::vector<ConfigField> fields_of_methods();

}  // namespace cohort
