// Whether two stretches of memory have a byte in common.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace cohort::network {

inline bool overlap(std::span<const std::byte> one, std::span<const std::byte> other) {
  const std::less<> before;
  return !one.empty() && !other.empty() && before(one.data(), other.data() + other.size()) &&
         before(other.data(), one.data() + one.size());
}

}  // namespace cohort::network
