// What a server counts of its members.
#pragma once

#include <cstdint>

namespace cohort::membership {

struct MembershipCounters {
  std::uint64_t fenced = 0;  // frames of old incarnations
  std::uint64_t evictions = 0;
  std::uint64_t persist_failures = 0;
};

}  // namespace cohort::membership
