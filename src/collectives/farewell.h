// What the others are told when a rank leaves.
#pragma once

#include <string>

namespace cohort {

// "rank 1 left: its disk is full". A reason that names a rank itself is another's, passed on.
inline std::string farewell(const std::string& who, const std::string& reason) {
  return reason.rfind("rank", 0) == 0 ? reason : who + " left: " + reason;
}

}  // namespace cohort
