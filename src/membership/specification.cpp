#include "membership/specification.h"

#include <cmath>

#include "core/text.h"
#include "storage/json_differences.h"

namespace cohort::membership {

using nlohmann::json;

namespace {

PeerError wrong(const char* key, const std::string& expected) {
  return PeerError(std::string("a job's specification: '") + key + "' is not " + expected);
}

}  // namespace

SpecificationReader::SpecificationReader(const json& object) : object_(object) {
  if (!object.is_object()) throw PeerError("a job's specification is no JSON object");
}

double SpecificationReader::number(const char* key, double low, double high) {
  const json& value = member(key);
  if (!value.is_number()) throw wrong(key, "a number");
  const double found = value.get<double>();
  if (!(found >= low && found <= high)) throw wrong(key, "within its bounds");
  return found;
}

std::int64_t SpecificationReader::integer(const char* key, std::int64_t low, std::int64_t high) {
  const json& value = member(key);
  if (!value.is_number_integer()) throw wrong(key, "a whole number");
  const bool huge = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxCount);
  if (huge || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    throw wrong(key, "between " + std::to_string(low) + " and " + std::to_string(high));
  }
  return value.get<std::int64_t>();
}

bool SpecificationReader::boolean(const char* key) {
  const json& value = member(key);
  if (!value.is_boolean()) throw wrong(key, "true or false");
  return value.get<bool>();
}

std::string SpecificationReader::text(const char* key) {
  const json& value = member(key);
  if (!value.is_string()) throw wrong(key, "a text");
  return value.get<std::string>();
}

std::vector<double> SpecificationReader::numbers(const char* key) {
  const json& value = member(key);
  if (!value.is_array()) throw wrong(key, "a list of numbers");
  std::vector<double> all;
  for (const json& element : value) {
    if (!element.is_number() || !(std::abs(element.get<double>()) <= kMaxNumber)) {
      throw wrong(key, "a list of numbers");
    }
    all.push_back(element.get<double>());
  }
  return all;
}

const json& SpecificationReader::member(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) {
    throw PeerError(std::string("a job's specification lacks '") + key + "'");
  }
  ++read_;
  return *found;
}

void SpecificationReader::require_all_read() const {
  if (read_ == object_.size()) return;
  throw PeerError("a job's specification holds settings that this program does not know");
}

json further_settings(const std::string& text) {
  if (text.empty()) return json::object();
  json settings = storage::parse_json(text, kMaxSpecificationDepth);
  if (!settings.is_object()) throw PeerError("a job's further settings are no JSON object");
  return settings;
}

std::string differences_from_told(const std::string& told, const json& flat,
                                  const std::string& where) {
  if (told.empty()) return {};
  return join(storage::differences_from_told(storage::parse_json(told, kMaxSpecificationDepth),
                                             flat, where),
              "; ");
}

}  // namespace cohort::membership
