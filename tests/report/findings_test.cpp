#include "report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cohort::report {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// A loss that falls to a tenth over `count` points, with noise of that size in its logarithm.
std::vector<Point> falling(int count, double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    points.push_back({static_cast<double>(i), std::exp(-2.3 * i / count + noise * normal(random))});
  }
  return points;
}

TEST(Shocks, AreNotSeenInASmoothOrMildlyNoisyDescent) {
  EXPECT_THAT(find_shocks(falling(40, 0, 1)), IsEmpty());
  for (unsigned seed = 1; seed <= 50; ++seed) {
    EXPECT_THAT(find_shocks(falling(40, 0.08, seed)), IsEmpty()) << seed;
  }
}

TEST(Shocks, AreRareInStrongNoise) {
  std::size_t found = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) found += find_shocks(falling(40, 0.2, seed)).size();
  EXPECT_LT(found, 50U) << "of 1950 changes, whose deviation is 0.28";
}

TEST(Shocks, AreFoundWhereTheyAre) {
  std::vector<Point> losses = falling(40, 0.03, 1);
  for (const int at : {10, 20, 33}) losses[static_cast<std::size_t>(at)].y = 2.2;
  const auto shocks = find_shocks(losses);
  ASSERT_THAT(shocks, SizeIs(3));
  EXPECT_EQ(shocks[0].seconds, 10);
  EXPECT_EQ(shocks[0].before, losses[9].y);
  EXPECT_EQ(shocks[0].after, 2.2);
  EXPECT_EQ(shocks[1].seconds, 20);
  EXPECT_EQ(shocks[2].seconds, 33);
}

TEST(Shocks, AreFoundHoweverManyThereAre) {
  std::vector<Point> losses;
  for (int i = 0; i < 20; ++i) losses.push_back({i + 0.0, i % 2 == 0 ? 0.1 : 1.0});
  EXPECT_THAT(find_shocks(losses), SizeIs(10));
  for (int i = 0; i < 20; ++i) {
    losses[static_cast<std::size_t>(i)].y = i % 3 == 0 ? 0.1 : i % 3 == 1 ? 1.0 : 0.12;
  }
  EXPECT_THAT(find_shocks(losses), SizeIs(7));
}

TEST(Shocks, ARecoveryOverSeveralPointsIsOneShock) {
  EXPECT_THAT(find_shocks(std::vector<Point>{
                  {0, 1}, {1, 0.5}, {2, 0.3}, {3, 2}, {4, 1.2}, {5, 0.6}, {6, 0.29}, {7, 0.28}}),
              SizeIs(1));
}

TEST(Shocks, MissTheMarkBelowHalf) {
  std::vector<Point> losses;
  for (int i = 0; i < 20; ++i) losses.push_back({i + 0.0, i == 10 ? 1.45 : 1.0});
  EXPECT_THAT(find_shocks(losses), IsEmpty());
  losses[10].y = 1.55;
  EXPECT_THAT(find_shocks(losses), SizeIs(1));
}

TEST(Shocks, LossesThatAreNoneAreLeftOut) {
  std::vector<Point> losses = falling(20, 0, 1);
  losses[5].y = NAN;
  losses[7].y = INFINITY;
  EXPECT_THAT(find_shocks(losses), IsEmpty());
  EXPECT_THAT(find_shocks(std::vector<Point>{{0, 1}, {1, 9}, {2, 1}}), IsEmpty()) << "too few";
  EXPECT_THAT(find_shocks({}), IsEmpty());
}

ScoredDump server_dump(double seconds, std::int64_t version, double loss) {
  ScoredDump dump;
  dump.name.of_server = true;
  dump.name.version = version;
  dump.score = {loss, 0.9, seconds};
  return dump;
}

ScoredDump worker_dump(double seconds, double loss) {
  ScoredDump dump;
  dump.score = {loss, 0.9, seconds};
  return dump;
}

DumpScores scores_of(double last_version_seconds) {
  DumpScores scores;
  scores.server = {server_dump(1, 1, 1.0), server_dump(last_version_seconds, 2, 0.3)};
  for (int i = 1; i <= 10; ++i) scores.workers[0].push_back(worker_dump(10 * i, 0.5));
  return scores;
}

TEST(Freezes, AreServersThatStopWhileWorkersGoOn) {
  const auto freeze = find_freeze(scores_of(20), 100);
  ASSERT_TRUE(freeze);
  EXPECT_EQ(freeze->version, 2);
  EXPECT_EQ(freeze->loss, 0.3);
  EXPECT_DOUBLE_EQ(freeze->share(), 0.2);
  EXPECT_EQ(freeze->best_later_loss, 0.5);
  EXPECT_FALSE(find_freeze(scores_of(61), 100)) << "more than 60 %";
  EXPECT_TRUE(find_freeze(scores_of(59), 100));
}

TEST(Freezes, TellWhetherSomethingBetterCameLater) {
  DumpScores scores = scores_of(20);
  scores.workers[1] = {worker_dump(10, 0.01), worker_dump(50, 0.2), worker_dump(60, NAN)};
  EXPECT_EQ(find_freeze(scores, 100)->best_later_loss, 0.2) << "0.01 came before it";
}

TEST(Freezes, NeedWorkersThatWentOn) {
  DumpScores scores = scores_of(20);
  scores.workers[0].resize(4);  // two after the last version
  EXPECT_FALSE(find_freeze(scores, 100));
  EXPECT_FALSE(find_freeze({}, 100));
  EXPECT_FALSE(find_freeze(scores_of(20), 0));
}

TEST(StandardErrors, AreThoseOfABinomialDistribution) {
  EXPECT_DOUBLE_EQ(binomial_standard_error(0.5, 100), 0.05);
  EXPECT_NEAR(binomial_standard_error(0.987, 10000), 0.001133, 1e-6);
  EXPECT_EQ(binomial_standard_error(0.5, 0), 0);
  EXPECT_EQ(binomial_standard_error(1, 100), 0);
}

TEST(Spreads, AreThoseOfTheSample) {
  const Spread spread = spread_of(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(spread.mean, 2);
  EXPECT_DOUBLE_EQ(spread.deviation, 1);
  EXPECT_EQ(spread.count, 3U);
  EXPECT_EQ(spread_of(std::vector<double>{5}).deviation, 0);
  EXPECT_EQ(spread_of({}).count, 0U);
}

}  // namespace
}  // namespace cohort::report
