// When a synchronous round is complete, and of whom. Pure functions of the table of members.
#pragma once

#include <cstdint>
#include <vector>

#include "server/job_spec.h"
#include "server/members.h"

namespace cohort::server {

struct RoundDecision {
  enum class Kind {
    kWait,
    kMake,       // of `participants`; pushes of others for this round are too late
    kSkip,       // to `version`: nobody is left who could repeat the rounds before it
    kRecovered,  // all that was known before the restart has been made again
  };
  Kind kind = Kind::kWait;
  std::vector<Rank> participants = {};  // ascending
  std::vector<Rank> missing = {};       // had been in this round and cannot come any more
  std::uint64_t version = 0;
};

// The next round in the ordinary course: every live member, or as many as workers without the
// backup workers. Not before every worker has been there once.
RoundDecision next_round(const Members& members, const JobSpec& spec);

// The next round after a restart: first those that had been made before it, as the members tell.
RoundDecision next_recovered_round(const Members& members, std::uint64_t version);

}  // namespace cohort::server
