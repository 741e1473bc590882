// How messages speak of ranks, and what the others are told when one leaves.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/types.h"

namespace cohort::collectives {

// How long a process that is through waits for the others before it ends.
inline constexpr std::chrono::milliseconds kFarewellTime{5000};

// "rank 1", "ranks 2 and 3".
inline std::string list_of(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

// "rank 1 left: its disk is full". A reason that names a rank itself is another's, passed on.
inline std::string farewell(const std::string& who, const std::string& reason) {
  return reason.rfind("rank", 0) == 0 ? reason : who + " left: " + reason;
}

}  // namespace cohort::collectives
