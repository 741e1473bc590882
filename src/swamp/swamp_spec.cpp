#include "swamp/swamp_spec.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "storage/json.h"
#include "storage/json_differences.h"
#include "swamp/registry.h"

namespace cohort {

using nlohmann::json;

namespace {

constexpr int kMaxSpecDepth = 4;

json parsed_settings(const std::string& text) {
  if (text.empty()) return json::object();
  json settings = parse_json(text, kMaxSpecDepth);
  if (!settings.is_object()) throw PeerError("a swamp's settings are no JSON object");
  return settings;
}

// By the names of the flags, which the further settings have too: each is named once.
json flat(const SwampSpec& spec) {
  json all = parsed_settings(spec.settings);
  all["workers"] = spec.workers;
  all["swamp-server"] = spec.policy;
  all["swamp-hysteresis"] = spec.hysteresis;
  return all;
}

void require_sound(const SwampSpec& spec) {
  if (spec.workers < 1 || spec.workers > kMaxSwampWorkers) {
    throw PeerError("a swamp of " + std::to_string(spec.workers) + " workers; it can have 1 to " +
                    std::to_string(kMaxSwampWorkers));
  }
  if (spec.values < 1 || spec.values > kMaxSwampValues) {
    throw PeerError("models of " + std::to_string(spec.values) + " values; they can have 1 to " +
                    std::to_string(kMaxSwampValues));
  }
  if (!std::isfinite(spec.hysteresis) || spec.hysteresis < 0) {
    throw PeerError("the hysteresis must be 0 or more");
  }
  swamp_policies().find(spec.policy);
  parsed_settings(spec.settings);
}

SwampSpec read_spec(const json& object) {
  SwampSpec spec;
  if (!object.is_object() || object.size() != to_json(spec).size()) {
    throw PeerError("a swamp's specification has not the right members");
  }
  const auto number = [&](const char* key) {
    const json& value = object.at(key);
    if (!value.is_number_integer()) throw PeerError(std::string(key) + " is no whole number");
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMaxSwampValues) {
      throw PeerError(std::string(key) + " is too large");
    }
    return value.get<std::int64_t>();
  };
  spec.workers =
      static_cast<int>(std::clamp<std::int64_t>(number("trainer-number"), 0, kMaxSwampWorkers + 1));
  spec.values = number("values");
  spec.policy = object.at("swamp-server").get<std::string>();
  spec.hysteresis = object.at("hysteresis").get<double>();
  spec.settings = object.at("settings").get<std::string>();
  require_sound(spec);
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
  try {
    return read_spec(parse_json(text, kMaxSpecDepth));
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    throw PeerError(std::string("a swamp's specification: ") + error.what());
  } catch (const json::exception& error) {
    throw PeerError(std::string("a swamp's specification: ") + error.what());
  }
}

std::string differences(const SwampSpec& first, const SwampSpec& other) {
  const std::vector<std::string> found = differing_settings(flat(first), flat(other));
  if (!found.empty() || first.values == other.values) return join(found, "; ");
  return "the models are of " + std::to_string(other.values) + " values here and of " +
         std::to_string(first.values) + " at the others";
}

std::string differences_from_told(const std::string& told, const SwampSpec& spec) {
  if (told.empty()) return {};
  return join(differences_from_told(parse_json(told, kMaxSpecDepth), flat(spec),
                                    "where the server was started"),
              "; ");
}

}  // namespace cohort
