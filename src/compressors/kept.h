// How many elements a sparse compressor keeps.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cohort::detail {

// k = max(1, int(n (1 - ratio))), as the authors of CHOCO-SGD count; 0 of 0.
inline std::size_t kept(std::size_t numel, double ratio) {
  const auto share = static_cast<std::size_t>(static_cast<double>(numel) * (1 - ratio));
  return std::min(numel, std::max<std::size_t>(1, share));
}

}  // namespace cohort::detail
