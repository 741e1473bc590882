// What a best-model server did.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "membership/membership_counters.h"

namespace cohort::swamp {

// Counted since this server started, but for `accepted`, which is since the beginning of the job.
struct SwampCounters : membership::MembershipCounters {
  std::uint64_t offers = 0;      // that arrived whole
  std::uint64_t duplicates = 0;  // offers sent again though they had arrived
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t dropped = 0;
  std::uint64_t replaced = 0;
  std::uint64_t refused = 0;   // offers
  std::uint64_t examined = 0;  // examinations begun
  std::uint64_t pulls = 0;     // answered with a model; not those at the start and the end
  std::uint64_t pulls_with_nothing = 0;
  std::uint64_t not_replayed = 0;  // PolicyStanding
};

struct SwampReport {
  std::string reason;  // why it ended
  SwampCounters counters;
  std::uint64_t version = 0;  // of the best model
  double score = 0;           // what pullers were told of it; infinity when there is none
  double loss = 0;            // as it was examined; likewise
  std::map<std::string, std::uint64_t> refusals;  // of connections, by reason
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

}  // namespace cohort::swamp
