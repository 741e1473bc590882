// Sizes that the collectives of threads and of processes share.
#pragma once

#include <cstddef>

namespace cohort::collectives {

inline constexpr std::size_t kCacheLine = 64;
// Up to here every member sums all inputs itself, from copies that each has published.
inline constexpr std::size_t kSmallBytes = std::size_t{16} * 1024;

}  // namespace cohort::collectives
