#include "storage/json_differences.h"

#include <nlohmann/json.hpp>

namespace cohort {

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

}  // namespace cohort
