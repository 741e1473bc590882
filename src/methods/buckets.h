// Which stretches of the gradient arena are sent at once, and in which order.
//
// A bucket is a range of the arena that covers whole segments. Few large buckets cost less to send;
// many small ones leave earlier, while backward still works on the rest. Pure functions, so that
// all ranks that are given the same numbers make the same plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace cohort::methods {

struct BucketSizes {
  std::int64_t first_bytes = std::int64_t{1} << 20;
  std::int64_t bytes = std::int64_t{25} << 20;
};

// Cuts the arena between segments, which follow each other without gaps. No bucket is larger than
// asked for unless it is a single segment.
std::vector<Range> plan_buckets(std::span<const Range> segments, const BucketSizes& sizes);

// The order in which the buckets became complete, when the segments did in the order `arrivals`
// (indices of segments, each once): the buckets' indices.
std::vector<int> completion_order(std::span<const Range> buckets, std::span<const Range> segments,
                                  std::span<const int> arrivals);

// The index of the bucket that `position` lies in.
int bucket_at(std::span<const Range> buckets, std::int64_t position);

}  // namespace cohort::methods
