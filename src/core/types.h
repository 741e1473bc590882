// The few words every layer shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort {

using Rank = int;            // a worker's number in its group, 0 to size - 1
using Step = std::int64_t;   // optimizer steps taken since the start of the run, from 0
using Seed = std::uint64_t;  // what every random stream of a run is derived from
using Bytes = std::vector<std::byte>;

// A stretch of a flat vector: `size` elements from `begin`.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  std::int64_t end() const { return begin + size; }
  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace cohort
