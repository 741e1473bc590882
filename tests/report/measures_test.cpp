#include "report/measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "report/run_result.h"

namespace cohort::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

metrics::StepRecord step_of(Rank rank, Step step, double loss, std::int64_t samples) {
  metrics::StepRecord record;
  record.rank = rank;
  record.step = step;
  record.epoch = static_cast<double>(step) / 100;
  record.time_seconds = static_cast<double>(step) * 2 + rank;
  record.loss = loss;
  record.samples = samples;
  record.compute_seconds = 1;
  record.exchange_seconds = rank;
  record.bytes_sent = 1000000;
  return record;
}

TEST(OverRanks, WeighsByTheSamplesAndAddsThem) {
  const auto merged = metrics::over_ranks(
      {step_of(0, 50, 1, 300), step_of(1, 50, 5, 100), step_of(0, 100, 2, 300)});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_DOUBLE_EQ(merged[0].loss, 2);  // (300 * 1 + 100 * 5) / 400
  EXPECT_EQ(merged[0].samples, 400);
  EXPECT_EQ(merged[0].bytes_sent, 2000000U);
  EXPECT_DOUBLE_EQ(merged[0].exchange_seconds, 0.5);
  EXPECT_DOUBLE_EQ(merged[0].time_seconds, 101);
  EXPECT_EQ(merged[1], step_of(0, 100, 2, 300)) << "one record alone stays as it is";
}

TEST(OverRanks, RanksThatDoNotKeepInStepStillWeighTheSame) {
  // Rank 1 is behind by a few steps, as with servers that do not wait.
  std::vector<metrics::StepRecord> records;
  for (int i = 1; i <= 10; ++i) {
    records.push_back(step_of(0, i * 50, 1, 64));
    records.push_back(step_of(1, i * 50 - 7, 3, 64));
  }
  const auto merged = metrics::over_ranks(records);
  ASSERT_EQ(merged.size(), 10U);
  for (const metrics::StepRecord& record : merged) EXPECT_DOUBLE_EQ(record.loss, 2);
}

TEST(OverRanks, ANumberThatIsNoneShows) {
  EXPECT_TRUE(
      std::isnan(metrics::over_ranks({step_of(0, 1, 1, 1), step_of(1, 1, NAN, 1)})[0].loss));
}

TEST(Measures, NamesAreUniqueAndUnknownOnesListThem) {
  std::set<std::string> names;
  for (const Measure& measure : measures()) {
    EXPECT_TRUE(names.insert(measure.name).second) << measure.name;
    EXPECT_THAT(measure_names(), HasSubstr(measure.name));
    EXPECT_EQ(&find_measure(measure.name), &measure);
  }
  try {
    find_measure("test-top");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'test-top1'"));
    for (const std::string& name : names) EXPECT_THAT(error.what(), HasSubstr(name));
  }
  EXPECT_THROW(find_course("hours"), ConfigError);
}

TEST(Measures, ComeFromTheRightFields) {
  RunRecords run;
  run.steps = {step_of(0, 50, 2.5, 640), step_of(0, 100, 1.5, 640)};
  for (metrics::StepRecord& record : run.steps) {
    record.top1 = 0.25;
    record.top5 = 0.5;
    record.lr = 0.1;
  }
  run.evaluations = {
      {.time_seconds = 300, .step = 100, .epoch = 1, .loss = 1.25, .top1 = 0.75, .top5 = 0.875}};
  const auto last = [&](const char* measure, const char* course) {
    return curve_of(run, find_measure(measure), find_course(course)).back();
  };
  EXPECT_EQ(last("train-loss", "epoch"), (Point{1, 1.5}));
  EXPECT_EQ(last("train-top1", "step"), (Point{100, 25}));
  EXPECT_EQ(last("train-top5", "seconds"), (Point{200, 50}));
  EXPECT_EQ(last("test-loss", "epoch"), (Point{1, 1.25}));
  EXPECT_EQ(last("test-top1", "seconds"), (Point{300, 75}));
  EXPECT_EQ(last("test-top5", "step"), (Point{100, 87.5}));
  EXPECT_EQ(last("lr", "epoch"), (Point{1, 0.1}));
  EXPECT_EQ(last("samples-per-second", "epoch"), (Point{1, 640}));
  EXPECT_EQ(last("exchange-share", "epoch"), (Point{1, 0}));
  EXPECT_EQ(last("megabytes-sent", "epoch"), (Point{1, 2})) << "so far";
  EXPECT_TRUE(std::isnan(last("staleness", "epoch").y));
  run.steps.back().staleness = 1.5;
  run.steps.back().consensus_distance = 0.5;
  EXPECT_EQ(last("staleness", "epoch").y, 1.5);
  EXPECT_EQ(last("consensus-distance", "epoch").y, 0.5);
}

TEST(Curves, AscendAndLeaveOutPointsWithoutAPlace) {
  RunRecords run;
  run.steps = {step_of(0, 100, 1, 1), step_of(0, 50, 2, 1), step_of(0, 150, 3, 1)};
  run.steps[2].epoch = NAN;
  EXPECT_THAT(curve_of(run, find_measure("train-loss"), find_course("epoch")),
              ElementsAre(Point{0.5, 2}, Point{1, 1}));
}

TEST(Curves, OverTheBytesOfAllWorkersSoFar) {
  RunRecords run;
  run.steps = {step_of(0, 50, 4, 1), step_of(1, 50, 4, 1), step_of(0, 100, 2, 1),
               step_of(1, 100, 2, 1)};  // a megabyte each
  run.evaluations = {{.time_seconds = 150, .step = 70, .epoch = 0.7, .top1 = 0.5}};
  EXPECT_THAT(curve_of(run, find_measure("train-loss"), find_course("megabytes")),
              ElementsAre(Point{2, 4}, Point{4, 2}));
  EXPECT_THAT(curve_of(run, find_measure("test-top1"), find_course("megabytes")),
              ElementsAre(Point{2, 50}));
}

TEST(Curves, OfOneWorkerHoldItsRecordsOnly) {
  RunRecords run;
  run.steps = {step_of(0, 50, 4, 64), step_of(1, 50, 2, 64), step_of(1, 100, 1, 64)};
  const auto of = [&](Owner owner, const char* measure) {
    return curve_of(run, find_measure(measure), find_course("step"), owner);
  };
  EXPECT_THAT(of({Owner::Kind::kWorker, 1}, "train-loss"),
              ElementsAre(Point{50, 2}, Point{100, 1}));
  EXPECT_THAT(of({Owner::Kind::kWorker, 1}, "megabytes-sent"),
              ElementsAre(Point{50, 1}, Point{100, 2}));
  EXPECT_THAT(of({Owner::Kind::kServer, 0}, "train-loss"), testing::IsEmpty());
  EXPECT_THAT(of({}, "train-loss"), ElementsAre(Point{50, 3}, Point{100, 1}));
}

// Whether workers keep in step or one takes more steps than the other.
TEST(Measures, CurvesEndWhereTheTableIs) {
  RunRecords run;
  for (const auto& [rank, records] : {std::pair<Rank, int>{0, 5}, {1, 3}}) {
    for (int i = 1; i <= records; ++i) {
      run.steps.push_back({.time_seconds = 1.0 * i,
                           .rank = rank,
                           .step = 10 * i,
                           .epoch = 0.1 * i,
                           .samples = 640,
                           .compute_seconds = 1,
                           .steps = 10,
                           .bytes_sent = 1000000,
                           .wire_bytes_sent = 1100000});
    }
  }
  const RunResult result = result_of(run);
  const auto end_of = [&](const char* measure) {
    return curve_of(run, find_measure(measure), find_course("epoch")).back().y;
  };
  EXPECT_DOUBLE_EQ(result.megabytes_sent, 8);
  EXPECT_DOUBLE_EQ(end_of("megabytes-sent"), 8);
  EXPECT_DOUBLE_EQ(*result.wire_megabytes_sent, 8.8);
  EXPECT_DOUBLE_EQ(end_of("wire-megabytes-sent"), 8.8);
  EXPECT_DOUBLE_EQ(*result.samples_per_second, 8 * 640 / 4.0);
  EXPECT_DOUBLE_EQ(curve_of(run, find_measure("samples-per-second"), find_course("epoch"))[0].y,
                   1280);
  run.config["workers"] = 3;
  EXPECT_EQ(result_of(run).missing_workers, 1);
}

}  // namespace
}  // namespace cohort::report
