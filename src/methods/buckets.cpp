#include "methods/buckets.h"

#include <algorithm>

#include "core/error.h"

namespace cohort::methods {

std::vector<Range> plan_buckets(std::span<const Range> segments, const BucketSizes& sizes) {
  std::vector<Range> buckets;
  for (const Range& segment : segments) {
    const std::int64_t limit = buckets.size() <= 1 ? sizes.first_bytes : sizes.bytes;
    const auto with_this = [&] {
      return (buckets.back().size + segment.size) * static_cast<std::int64_t>(sizeof(float));
    };
    if (buckets.empty() || with_this() > limit) {
      buckets.push_back(segment);
    } else {
      buckets.back().size += segment.size;
    }
  }
  return buckets;
}

int bucket_at(std::span<const Range> buckets, std::int64_t position) {
  const auto after = std::upper_bound(
      buckets.begin(), buckets.end(), position,
      [](std::int64_t place, const Range& bucket) { return place < bucket.begin; });
  COHORT_CHECK(after != buckets.begin(), "a position before the first bucket");
  return static_cast<int>(after - buckets.begin()) - 1;
}

std::vector<int> completion_order(std::span<const Range> buckets, std::span<const Range> segments,
                                  std::span<const int> arrivals) {
  std::vector<std::int64_t> missing;
  for (const Range& bucket : buckets) missing.push_back(bucket.size);
  std::vector<int> order;
  for (const int arrival : arrivals) {
    const Range& segment = segments[static_cast<std::size_t>(arrival)];
    const int bucket = bucket_at(buckets, segment.begin);
    missing[static_cast<std::size_t>(bucket)] -= segment.size;
    if (missing[static_cast<std::size_t>(bucket)] == 0) order.push_back(bucket);
  }
  COHORT_CHECK(order.size() == buckets.size(), "every segment arrives once");
  return order;
}

}  // namespace cohort::methods
