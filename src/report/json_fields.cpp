#include "report/json_fields.h"

namespace cohort::report {

const nlohmann::json& field_at(const nlohmann::json& json,
                               std::initializer_list<const char*> path) {
  static const nlohmann::json nothing;
  const nlohmann::json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nothing;
    const auto found = at->find(key);
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}

std::optional<double> number_at(const nlohmann::json& json,
                                std::initializer_list<const char*> path) {
  const nlohmann::json& value = field_at(json, path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string text_at(const nlohmann::json& json, std::initializer_list<const char*> path) {
  const nlohmann::json& value = field_at(json, path);
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cohort::report
