// What the others are told when a rank leaves, and how messages speak of ranks.
#pragma once

#include <chrono>
#include <string>

#include "core/ranks.h"

namespace cohort::collectives {

// How long a process that is through waits for the others before it ends.
inline constexpr std::chrono::milliseconds kFarewellTime{5000};

// "rank 1 left: its disk is full". A reason that names a rank itself is another's, passed on.
inline std::string farewell(const std::string& who, const std::string& reason) {
  return reason.rfind("rank", 0) == 0 ? reason : who + " left: " + reason;
}

}  // namespace cohort::collectives
