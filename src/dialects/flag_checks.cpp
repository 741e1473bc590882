#include "dialects/flag_checks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace cohort::dialects {

void check_range(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw ConfigError(fmt::format("{} must be from {} to {}, got {}", flag, low, high, value));
}

void check_choice(const char* flag, const std::string& value,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw ConfigError(unknown_name(flag, value, known));
}

}  // namespace cohort::dialects
