// JSON from files nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace cohort::storage {

// Throws FileError on a syntax error, on a key that occurs twice in one object, and on values
// nested deeper than `depth_limit`: later copies of a value recurse, and a megabyte of '[' must not
// exhaust the stack. Memory is within a constant factor of the text's length.
nlohmann::json parse_json(std::string_view text, int depth_limit);

// The text for `value`, which parse_json turns back into an equal value. Throws RunError when there
// is none: JSON has no NaN, no infinity and no strings that are not UTF-8.
std::string format_json(const nlohmann::json& value, int indent);

}  // namespace cohort::storage
