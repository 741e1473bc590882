#include "storage/json.h"

#include <set>
#include <string>
#include <vector>

#include "core/error.h"

namespace cohort::storage {

using nlohmann::json;

json parse_json(std::string_view text, int depth_limit) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case json::parse_event_t::array_start:
        if (depth >= depth_limit) {
          throw FileError("JSON nested deeper than " + std::to_string(depth_limit) + " levels");
        }
        break;
      case json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second) {
          throw FileError("the key " + parsed.dump() + " occurs twice in one JSON object");
        }
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::exception& error) {
    throw FileError(std::string("not valid JSON: ") + error.what());
  }
}

std::string format_json(const json& value, int indent) {
  try {
    std::string text = value.dump(indent);
    // dump() writes null for numbers JSON cannot hold, so only a comparison tells.
    if (json::parse(text) == value) return text;
  } catch (const json::exception& error) {
    throw RunError(std::string("a value cannot be written as JSON: ") + error.what());
  }
  throw RunError("a value cannot be written as JSON: it holds a NaN or an infinity");
}

}  // namespace cohort::storage
