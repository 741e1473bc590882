// The exit statuses of the program, which its launcher reads too.
#pragma once

namespace cohort {

inline constexpr int kExitBadUsage = 2;
inline constexpr int kExitInterrupted = 130;

}  // namespace cohort
