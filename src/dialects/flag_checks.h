// Checks of single flags that the dialects share. Each throws a ConfigError.
#pragma once

#include <string>
#include <vector>

namespace cohort::dialects {

void check_range(const char* flag, double value, double low, double high);
void check_choice(const char* flag, const std::string& value,
                  const std::vector<std::string>& known);

}  // namespace cohort::dialects
