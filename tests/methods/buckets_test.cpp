#include "methods/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"
#include "methods/bucket_tuner.h"

namespace cohort::methods {
namespace {

std::vector<Range> segments_of(const std::vector<std::int64_t>& sizes) {
  std::vector<Range> segments;
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    segments.push_back({offset, size});
    offset += size;
  }
  return segments;
}

std::vector<std::int64_t> sizes_of(const std::vector<Range>& buckets) {
  std::vector<std::int64_t> sizes;
  for (const Range& bucket : buckets) sizes.push_back(bucket.size);
  return sizes;
}

TEST(PlanBuckets, FillsTheFirstAndThenTheOthersAsFarAsAskedFor) {
  // In floats: 10 for the first bucket, 25 for the others.
  const auto plan = plan_buckets(segments_of({4, 6, 1, 20, 4, 3, 22, 1}),
                                 {.first_bytes = 4 * 10, .bytes = 4 * 25});
  EXPECT_EQ(sizes_of(plan), (std::vector<std::int64_t>{10, 25, 25, 1}));
}

TEST(PlanBuckets, GivesALargeSegmentABucketOfItsOwn) {
  EXPECT_EQ(sizes_of(plan_buckets(segments_of({100, 1, 1, 100, 1}),
                                  {.first_bytes = 4 * 10, .bytes = 4 * 10})),
            (std::vector<std::int64_t>{100, 2, 100, 1}));
  EXPECT_EQ(sizes_of(plan_buckets(segments_of({5}), {.first_bytes = 0, .bytes = 0})),
            (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(plan_buckets({}, {}).empty());
}

TEST(PlanBuckets, TilesTheArenaInWholeSegmentsWithinTheLimits) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> sizes(1 + random() % 30);
    for (std::int64_t& size : sizes) size = 1 + random() % (random() % 5 == 0 ? 400 : 20);
    const std::vector<Range> segments = segments_of(sizes);
    const BucketSizes limits{.first_bytes = 4 * (1 + static_cast<std::int64_t>(random() % 60)),
                             .bytes = 4 * (1 + static_cast<std::int64_t>(random() % 200))};
    const auto plan = plan_buckets(segments, limits);
    std::int64_t offset = 0;
    std::size_t segment = 0;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      ASSERT_EQ(plan[i].begin, offset);
      offset = plan[i].end();
      const std::size_t first = segment;
      while (segment < segments.size() && segments[segment].end() <= offset) ++segment;
      ASSERT_EQ(segments[segment - 1].end(), offset) << "a bucket cuts a segment";
      const std::int64_t limit = i == 0 ? limits.first_bytes : limits.bytes;
      if (segment - first > 1) {
        ASSERT_LE(plan[i].size * 4, limit);
      }
      // One more segment would not have fitted: no bucket is needlessly small.
      if (segment < segments.size()) {
        ASSERT_GT((plan[i].size + sizes[segment]) * 4, limit);
      }
    }
    ASSERT_EQ(offset, segments.back().end());
  }
}

TEST(BucketAt, FindsTheBucketOfEveryPosition) {
  const std::vector<Range> buckets = segments_of({3, 1, 7});
  const int expected[] = {0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2};
  for (std::int64_t i = 0; i < 11; ++i) EXPECT_EQ(bucket_at(buckets, i), expected[i]) << i;
}

TEST(CompletionOrder, IsThatInWhichTheLastSegmentOfEachBucketCame) {
  const std::vector<Range> segments = segments_of({2, 2, 2, 2, 2});
  const std::vector<Range> buckets = {{0, 4}, {4, 2}, {6, 4}};  // of segments 01, 2, 34
  const auto order = [&](std::vector<int> arrivals) {
    return completion_order(buckets, segments, arrivals);
  };
  EXPECT_EQ(order({0, 1, 2, 3, 4}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(order({4, 3, 2, 1, 0}), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(order({0, 3, 2, 4, 1}), (std::vector<int>{1, 2, 0}));
}

TEST(CompletionOrder, IsAPermutationWhateverTheOrderOfArrival) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> sizes(1 + random() % 20);
    for (std::int64_t& size : sizes) size = 1 + random() % 9;
    const auto segments = segments_of(sizes);
    const auto buckets = plan_buckets(segments, {.first_bytes = 40, .bytes = 80});
    std::vector<int> arrivals(sizes.size());
    std::iota(arrivals.begin(), arrivals.end(), 0);
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    std::vector<int> order = completion_order(buckets, segments, arrivals);
    std::sort(order.begin(), order.end());
    std::vector<int> all(buckets.size());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(order, all);
  }
}

// Runs the tuner against a made-up machine; returns the steps until it is done.
int tune(BucketTuner& tuner, const std::function<double(std::int64_t, int)>& step_seconds) {
  int steps = 0;
  int since_change = 0;
  while (!tuner.done() && steps < 1000) {
    const std::int64_t before = tuner.bytes();
    const bool changed = tuner.step(step_seconds(before, since_change++));
    EXPECT_EQ(changed, tuner.bytes() != before);
    if (changed) since_change = 0;
    ++steps;
  }
  return steps;
}

TEST(BucketTuner, PicksTheFastestSize) {
  for (const std::size_t fastest : {0, 2, 4}) {
    BucketTuner tuner(std::int64_t{1} << 30);
    ASSERT_GE(tuner.candidates().size(), 5U);
    const std::int64_t wanted = tuner.candidates()[fastest];
    const int steps = tune(tuner, [&](std::int64_t bytes, int) {
      return bytes == wanted ? 0.5 : 0.6 + 1e-12 * static_cast<double>(bytes);
    });
    EXPECT_EQ(tuner.bytes(), wanted);
    EXPECT_LT(steps, 50) << "tuning is to be a matter of the first steps";
    EXPECT_FALSE(tuner.step(100)) << "what is decided stays decided";
    EXPECT_EQ(tuner.bytes(), wanted);
  }
}

TEST(BucketTuner, IsNotFooledByTheFirstStepWithASizeNorByASlowOne) {
  BucketTuner tuner(std::int64_t{1} << 30);
  const std::int64_t wanted = tuner.candidates()[1];
  tune(tuner, [&](std::int64_t bytes, int step) {
    if (bytes == wanted) return step == 0 || step == 2 ? 9.0 : 0.5;  // slow at first, and once more
    return step == 0 ? 0.1 : 0.6;                                    // fast at first
  });
  EXPECT_EQ(tuner.bytes(), wanted);
}

TEST(BucketTuner, HasNothingToTryForASmallArena) {
  BucketTuner tuner(1000);
  EXPECT_TRUE(tuner.done());
  EXPECT_FALSE(tuner.step(1));
  // Larger buckets than the arena all mean one bucket: only one such candidate is of use.
  for (const std::int64_t bytes : {std::int64_t{3} << 20, std::int64_t{30} << 20}) {
    const auto candidates = BucketTuner(bytes).candidates();
    EXPECT_EQ(std::ranges::count_if(candidates, [&](std::int64_t c) { return c >= bytes; }), 1);
  }
}

}  // namespace
}  // namespace cohort::methods
