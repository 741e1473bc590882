#include "methods/lateness.h"

#include <gtest/gtest.h>

namespace cohort::methods {
namespace {

using Log = std::vector<StepArrivals>;

// Steps of one second; the two buckets of a step are ready half a second and 0.8 s after its start.
Log log_of(Step steps, double late_by = 0, double data_by = 0) {
  Log log;
  for (Step step = 0; step < steps; ++step) {
    const auto start = static_cast<double>(step);
    log.push_back({step, 0.01 + data_by, {start + 0.5 + late_by, start + 0.8 + late_by}});
  }
  return log;
}

TEST(FindLate, NamesTheRankByHowMuchAndThatItComputedLonger) {
  const std::vector<Log> logs = {log_of(10), log_of(10, 0.25), log_of(10, 0.05)};
  const auto late = find_late(logs);
  ASSERT_EQ(late.size(), 3U);
  EXPECT_EQ(late[1].steps_last, 10);
  EXPECT_NEAR(late[1].seconds, 10 * (0.25 - 0.05), 1e-9);  // the others' median, the upper of two
  EXPECT_NEAR(late[1].data_seconds, 0, 1e-9);
  for (const std::size_t other : {0, 2}) {
    EXPECT_EQ(late[other].steps_last, 0);
    EXPECT_EQ(late[other].seconds, 0);
  }
}

TEST(FindLate, KnowsLateDataFromLateComputing) {
  // All of it data; half of it; more data than lateness (hidden elsewhere) explains no more than
  // it.
  for (const auto& [data_by, explained] : {std::pair{0.2, 0.2}, {0.1, 0.1}, {0.9, 0.2}}) {
    const std::vector<Log> logs = {log_of(4), log_of(4), log_of(4), log_of(4, 0.2, data_by)};
    const auto late = find_late(logs);
    EXPECT_EQ(late[3].steps_last, 4);
    EXPECT_NEAR(late[3].seconds, 4 * 0.2, 1e-9);
    EXPECT_NEAR(late[3].data_seconds, 4 * explained, 1e-9);
  }
}

TEST(FindLate, GoesByArrivalNotByWaiting) {
  // Rank 0 waited long for its data and still came first: it held nobody up.
  const std::vector<Log> logs = {log_of(3, 0, 0.7), log_of(3, 0.1)};
  const auto late = find_late(logs);
  EXPECT_EQ(late[0].steps_last, 0);
  EXPECT_EQ(late[1].steps_last, 3);
  EXPECT_NEAR(late[1].seconds, 0.3, 1e-9);
  EXPECT_EQ(late[1].data_seconds, 0);
}

TEST(FindLate, ReadsEveryTimeOnTheFirstRanksClock) {
  std::vector<Log> logs = {log_of(5), log_of(5, 0.25), log_of(5)};
  for (StepArrivals& step : logs[2]) {
    for (double& time : step.buckets) time += 3600;
  }
  const std::vector<double> offsets = {0, 0, 3600};
  const auto late = find_late(logs, offsets);
  EXPECT_EQ(late[1].steps_last, 5);
  EXPECT_NEAR(late[1].seconds, 5 * 0.25, 1e-6);
  EXPECT_EQ(late[2].steps_last, 0);
  EXPECT_EQ(find_late(logs)[2].steps_last, 5) << "without the offset it looks an hour late";
}

TEST(FindLate, LeavesOutStepsThatSomeRankDoesNotHave) {
  std::vector<Log> logs = {log_of(6), log_of(6, 0.25)};
  logs[1].erase(logs[1].begin() + 2);
  logs[0].erase(logs[0].begin());
  logs[0].back().buckets.clear();  // began the step, sent nothing
  const auto late = find_late(logs);
  EXPECT_EQ(late[1].steps_last, 3);  // 1, 3 and 4
  EXPECT_NEAR(late[1].seconds, 3 * 0.25, 1e-9);
}

TEST(FindLate, NobodyIsLateAloneOrWithoutSteps) {
  const std::vector<Log> alone = {log_of(4)};
  EXPECT_EQ(find_late(alone).at(0).steps_last, 0);
  const std::vector<Log> nothing(3);
  for (const Lateness& rank : find_late(nothing)) EXPECT_EQ(rank.steps_last, 0);
  EXPECT_TRUE(find_late({}).empty());
}

TEST(ArrivalLog, KeepsStepsUntilTheyAreTaken) {
  ArrivalLog log;
  log.arrived();  // before any step: nothing to note it for
  log.begin(7, 0.5);
  const double before = ArrivalLog::now();
  log.arrived();
  log.arrived();
  log.begin(8, 0);
  const auto steps = log.take();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].step, 7);
  EXPECT_EQ(steps[0].data_seconds, 0.5);
  ASSERT_EQ(steps[0].buckets.size(), 2U);
  EXPECT_GE(steps[0].buckets[0], before);
  EXPECT_LE(steps[0].buckets[0], steps[0].buckets[1]);
  EXPECT_TRUE(steps[1].buckets.empty());
  EXPECT_TRUE(log.take().empty());
}

}  // namespace
}  // namespace cohort::methods
