// How messages speak of ranks.
#pragma once

#include <string>
#include <vector>

#include "core/types.h"

namespace cohort {

// "rank 1", "ranks 2 and 3".
inline std::string list_of(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace cohort
