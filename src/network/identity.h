// Who is who in a job, as processes tell each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/types.h"

namespace cohort::network {

// 128 bits that no two jobs share. No secret: it keeps jobs apart, credentials keep strangers out.
using JobId = std::array<std::byte, 16>;

JobId random_job_id();
// The same text gives the same id: for jobs whose processes know only the same command line.
JobId job_id_of(std::string_view text);
std::string to_text(const JobId& job);  // 32 hexadecimal digits
JobId parse_job_id(std::string_view text);

enum class Role : std::uint8_t {
  kWorker = 1,  // trains
  kServer = 2,  // keeps parameters
};
std::string_view to_text(Role role);  // "worker", "server"

// Of a process that is looked for: whichever is there.
inline constexpr Rank kAnyRank = std::numeric_limits<Rank>::max();

struct Identity {
  JobId job = {};
  Role role = Role::kWorker;
  Rank rank = 0;  // among those of its role

  std::string text() const;  // "worker 3"
  // Whether it is the one that `wanted` says.
  bool is(const Identity& wanted) const {
    return *this == wanted || (wanted.rank == kAnyRank && job == wanted.job && role == wanted.role);
  }
  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace cohort::network
