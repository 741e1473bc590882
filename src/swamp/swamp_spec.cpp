#include "swamp/swamp_spec.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "membership/specification.h"
#include "storage/json_differences.h"
#include "swamp/registry.h"

namespace cohort::swamp {

using nlohmann::json;

namespace {

// By the names of the flags, which the further settings have too: each is named once.
json flat(const SwampSpec& spec) {
  json all = membership::further_settings(spec.settings);
  all["workers"] = spec.workers;
  all["swamp-server"] = spec.policy;
  all["swamp-hysteresis"] = spec.hysteresis;
  return all;
}

SwampSpec read_spec(const json& object) {
  membership::SpecificationReader reader(object);
  SwampSpec spec;
  spec.workers = static_cast<int>(reader.integer("trainer-number", 1, kMaxSwampWorkers));
  spec.values = reader.integer("values", 1, kMaxSwampValues);
  spec.policy = reader.text("swamp-server");
  spec.hysteresis = reader.number("hysteresis", 0, membership::SpecificationReader::kMaxNumber);
  spec.settings = reader.text("settings");
  reader.require_all_read();
  swamp_policies().find(spec.policy);
  membership::further_settings(spec.settings);
  return spec;
}

}  // namespace

json to_json(const SwampSpec& spec) {
  return {{"trainer-number", spec.workers},
          {"values", spec.values},
          {"swamp-server", spec.policy},
          {"hysteresis", spec.hysteresis},
          {"settings", spec.settings}};
}

SwampSpec swamp_spec_from(const std::string& text) {
  return membership::read_specification(text, read_spec);
}

std::string differences(const SwampSpec& first, const SwampSpec& other) {
  const std::vector<std::string> found = storage::differing_settings(flat(first), flat(other));
  if (!found.empty() || first.values == other.values) return join(found, "; ");
  return "the models are of " + std::to_string(other.values) + " values here and of " +
         std::to_string(first.values) + " at the others";
}

std::string differences_from_told(const std::string& told, const SwampSpec& spec) {
  return membership::differences_from_told(told, flat(spec), "where the server was started");
}

}  // namespace cohort::swamp
