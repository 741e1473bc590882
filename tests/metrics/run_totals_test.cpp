#include "metrics/run_totals.h"

#include <gtest/gtest.h>

#include "metrics/over_ranks.h"

namespace cohort::metrics {
namespace {

StepRecord steps_of(Rank rank, std::int64_t samples, double seconds, std::uint64_t sent) {
  return {.rank = rank,
          .step = 10,
          .samples = samples,
          .compute_seconds = seconds,
          .steps = 10,
          .bytes_sent = sent,
          .bytes_received = 2 * sent};
}

TEST(RunTotals, AddsUpWorkersAndTheirRecords) {
  RunTotals totals;
  for (const Rank rank : {0, 1}) {
    totals.add(steps_of(rank, 100, 2, 1000));
    totals.add(steps_of(rank, 300, 2, 500));
  }
  EXPECT_EQ(totals.workers(), 2);
  const StepRecord all = totals.steps();
  EXPECT_EQ(all.samples, 800);
  EXPECT_EQ(all.steps, 20);
  EXPECT_EQ(all.bytes_sent, 3000U);
  EXPECT_EQ(all.bytes_received, 6000U);
  EXPECT_FALSE(all.wire_bytes_sent) << "nobody knows";
  EXPECT_DOUBLE_EQ(training_seconds(all), 4) << "both trained at the same time";
  EXPECT_DOUBLE_EQ(samples_per_second(all), 200);
}

TEST(RunTotals, KeepsWhatIsOutsideOfStepsApart) {
  RunTotals totals;
  totals.add(steps_of(0, 100, 2, 1000));
  totals.add(TrafficRecord{.rank = 0, .purpose = "start", .bytes_sent = 5, .wire_bytes_sent = 70});
  totals.add(TrafficRecord{.rank = 1, .purpose = "start", .bytes_sent = 6, .wire_bytes_sent = 80});
  totals.add(TrafficRecord{.rank = 1, .purpose = "checkpoint", .bytes_sent = 7});
  EXPECT_EQ(totals.steps().bytes_sent, 1000U);
  EXPECT_EQ(totals.outside().at("start").bytes_sent, 11U);
  EXPECT_EQ(totals.outside().at("start").wire_bytes_sent, 150U);
  EXPECT_EQ(totals.outside_sum().bytes_sent, 18U);
  EXPECT_EQ(totals.workers(), 1);
}

TEST(TotalsSink, TheNewestIsThatOfAllWorkers) {
  TotalsSink sink;
  EXPECT_EQ(sink.newest().steps, 0);
  sink.record(steps_of(0, 100, 2, 0));
  EXPECT_DOUBLE_EQ(samples_per_second(sink.newest()), 50);
  sink.record(steps_of(1, 100, 2, 0));
  EXPECT_DOUBLE_EQ(samples_per_second(sink.newest()), 100);
  sink.record(steps_of(0, 300, 2, 0));
  EXPECT_DOUBLE_EQ(samples_per_second(sink.newest()), 200);
  EXPECT_EQ(sink.totals().steps().samples, 500);
}

}  // namespace
}  // namespace cohort::metrics
