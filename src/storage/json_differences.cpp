#include "storage/json_differences.h"

#include <nlohmann/json.hpp>

namespace cohort::storage {

using nlohmann::json;

std::vector<std::string> differing_settings(const json& first, const json& other,
                                            const std::string& where) {
  const auto shown = [](const json& object, const std::string& key) {
    const auto at = object.find(key);
    return at == object.end() ? std::string("not set") : at->dump();
  };
  std::vector<std::string> found;
  json keys = first;
  keys.update(other);
  for (const auto& [key, value] : keys.items()) {
    if (first.contains(key) && other.contains(key) && first[key] == other[key]) continue;
    found.push_back("--" + key + " is " + shown(other, key) + " here and " + shown(first, key) +
                    " " + where);
  }
  return found;
}

std::vector<std::string> differences_from_told(const json& told, const json& other,
                                               const std::string& where) {
  json expected = json::object();
  json given = json::object();
  for (const auto& [name, value] : told.items()) {
    if (!other.contains(name)) continue;
    expected[name] = value;
    given[name] = other[name];
  }
  return differing_settings(expected, given, where);
}

}  // namespace cohort::storage
