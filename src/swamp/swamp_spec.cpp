#include "swamp/swamp_spec.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "storage/json.h"
#include "swamp/registry.h"

namespace cohort {

using nlohmann::json;

namespace {

constexpr int kMaxDepth = 4;

json parsed_settings(const std::string& text) {
  if (text.empty()) return json::object();
  json settings = parse_json(text, kMaxDepth);
  if (!settings.is_object()) throw PeerError("a swamp's settings are no JSON object");
  return settings;
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
    return read_spec(parse_json(text, kMaxDepth));
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    throw PeerError(std::string("a swamp's specification: ") + error.what());
  } catch (const json::exception& error) {
    throw PeerError(std::string("a swamp's specification: ") + error.what());
  }
}

std::string differences(const SwampSpec& first, const SwampSpec& other) {
  std::vector<std::string> found;
  const auto shown = [](const json& object, const std::string& key) {
    const auto at = object.find(key);
    return at == object.end() ? std::string("not set") : at->dump();
  };
  const auto compare = [&](const json& a, const json& b) {
    json keys = a;
    keys.update(b);
    for (const auto& [key, value] : keys.items()) {
      if (key == "settings" || (a.contains(key) && b.contains(key) && a[key] == b[key])) continue;
      if (key == "values") {
        found.push_back("the models are of " + shown(b, key) + " values here and of " +
                        shown(a, key) + " at the others");
      } else {
        found.push_back("--" + key + " is " + shown(b, key) + " here and " + shown(a, key) +
                        " at the others");
      }
    }
  };
  compare(to_json(first), to_json(other));
  compare(parsed_settings(first.settings), parsed_settings(other.settings));
  return join(found, "; ");
}

}  // namespace cohort
