// What a best-model server has to know about a job. Every worker brings it when it joins; the first
// one's counts, and the others' must be equal.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cohort::swamp {

// Bounds on what a peer may claim: a server makes room by these numbers.
inline constexpr std::int64_t kMaxSwampValues = std::int64_t{1} << 32;
inline constexpr int kMaxSwampWorkers = 1 << 16;

struct SwampSpec {
  int workers = 1;
  std::int64_t values = 0;           // of a model: parameters, then batch-norm statistics
  std::string policy = "validated";  // a name of swamp_policies()
  double hysteresis = 1.0;           // swamp/validated.h; finite, not negative
  std::string settings = {};         // further settings that must agree, a flat JSON object or ""
};

nlohmann::json to_json(const SwampSpec& spec);

// Throws PeerError on anything that is not a sound specification: a peer wrote it.
SwampSpec swamp_spec_from(const std::string& text);

// What differs, for the person who started `other`: "--lr is 0.1 here and 0.2 at the others; ...";
// empty when nothing does.
std::string differences(const SwampSpec& first, const SwampSpec& other);

// Where a worker's job is not what the server was told when it was started: `told` is a JSON object
// of settings by their names, empty for none. For people; empty where they agree.
std::string differences_from_told(const std::string& told, const SwampSpec& spec);

}  // namespace cohort::swamp
