// How many elements a sparse compressor keeps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace cohort::compressors::detail {

// k = max(1, floor(n (1 - ratio))), where the ratio is the decimal number that was written: 0.9 of
// 1000 leaves 100, though 1 - 0.9 is a little less than 0.1 for a computer (and 99 were left by the
// authors of CHOCO-SGD, who count the same otherwise). 0 of 0.
inline std::size_t kept(std::size_t numel, double ratio) {
  const auto all = static_cast<double>(numel);
  // As much as the roundings of the ratio, the difference and the product can take away together.
  const double lost = all * std::numeric_limits<double>::epsilon();
  const auto share = static_cast<std::size_t>(all * (1 - ratio) + lost);
  return std::min(numel, std::max<std::size_t>(1, share));
}

}  // namespace cohort::compressors::detail
