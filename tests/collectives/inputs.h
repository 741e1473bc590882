// Vectors to be summed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "core/types.h"

namespace cohort::collectives {

// Of each rank others, and the same each time.
inline std::vector<float> input_of(Rank rank, std::size_t numel) {
  RandomStream random(1, "test", {static_cast<std::uint64_t>(rank)});
  std::vector<float> values(numel);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

}  // namespace cohort::collectives
