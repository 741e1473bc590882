// Fields of JSON files that may lack them, or hold something else there.
#pragma once

#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cohort::report {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// What lies at the end of the path of keys; null when there is no such field.
const nlohmann::json& field_at(const nlohmann::json& json, std::initializer_list<const char*> path);

std::optional<double> number_at(const nlohmann::json& json,
                                std::initializer_list<const char*> path);

// Strings as they are, other values as JSON writes them; "" when there is none.
std::string text_at(const nlohmann::json& json, std::initializer_list<const char*> path);

}  // namespace cohort::report
