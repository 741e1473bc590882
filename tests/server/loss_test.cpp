// What is lost when the server dies together with the worker that could have repeated it: counted,
// named, and no good end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"

namespace cohort::server {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

void step(Cluster& cluster, Rank rank) {
  cluster.start_step(rank);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(rank));
}

// Worker 1 pushes twice and worker 0, which sees that, once; then the server dies, and what is on
// disk is of before.
void lose_two(Cluster& cluster) {
  count_pushes(cluster);
  cluster.begin();
  cluster.materialize();
  cluster.auto_persist = false;
  for (const Rank rank : {1, 1, 0}) step(cluster, rank);
  ASSERT_EQ(cluster.server->version(), 3U);
  cluster.crash_server();
  cluster.restart_server();
  cluster.auto_persist = true;
  cluster.connect(0);
  cluster.materialize();
  ASSERT_EQ(cluster.server->version(), 1U);
}

void leave(Cluster& cluster, std::initializer_list<Rank> ranks) {
  for (const Rank rank : ranks) cluster.client(rank).leave();
  cluster.materialize();
  cluster.pass(seconds(1));
  cluster.materialize();
}

TEST(Loss, OfAWorkerThatDiedWithTheServerIsCounted) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  lose_two(cluster);
  EXPECT_EQ(cluster.server->counters().lost, 0U) << "it may still come";
  cluster.pass(seconds(6));
  EXPECT_EQ(cluster.server->counters().lost, 2U);
  EXPECT_THAT(cluster.lines, testing::Contains(testing::AllOf(HasSubstr("LOST: 2 acknowledged"),
                                                              HasSubstr("worker 1"))));
}

TEST(Loss, OfAWorkerThatWasReplacedIsCountedAndIsNoGoodEnd) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  lose_two(cluster);
  cluster.start_worker(1);
  cluster.connect(1);
  cluster.materialize();
  EXPECT_EQ(cluster.server->counters().lost, 2U);
  leave(cluster, {0, 1});
  ASSERT_TRUE(cluster.server->finished());
  EXPECT_FALSE(cluster.server->ended_well());
  EXPECT_THAT(*cluster.server->finished(), HasSubstr("2 acknowledged gradients are in no model"));
}

TEST(Loss, IsNotCountedAgainWhenItsWorkerComesTooLate) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  lose_two(cluster);
  cluster.pass(seconds(6));
  cluster.connect(1);
  cluster.materialize();
  EXPECT_TRUE(cluster.client(1).membership().joined());
  EXPECT_EQ(cluster.server->counters().lost, 2U);
}

TEST(Loss, OfWhatWasAnnouncedAndNotRepeatedIsCounted) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  lose_two(cluster);
  cluster.connect(1);
  ASSERT_TRUE(cluster.deliver_to_server(1));  // its join
  cluster.disconnect(1);
  cluster.pass(seconds(6));
  EXPECT_EQ(cluster.server->counters().lost, 2U);
}

TEST(Loss, IsNoneWhenAllComeBack) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  lose_two(cluster);
  cluster.connect(1);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 3U);
  leave(cluster, {0, 1});
  EXPECT_EQ(cluster.server->counters().lost, 0U);
  EXPECT_TRUE(cluster.server->ended_well());
}

TEST(Loss, ThatNobodyCanTellOfIsNamed) {
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
    Cluster cluster(counting(1, mode), keeping());
    count_pushes(cluster);
    cluster.begin();
    cluster.materialize();
    cluster.auto_persist = false;
    step(cluster, 0);
    cluster.crash_server();
    cluster.restart_server();
    cluster.auto_persist = true;
    cluster.start_worker(0);
    cluster.connect(0);
    cluster.materialize();
    leave(cluster, {0});
    EXPECT_EQ(cluster.server->counters().unaccounted, 1U);
    ASSERT_TRUE(cluster.server->finished());
    EXPECT_THAT(*cluster.server->finished(), HasSubstr("a worker went with the server"));
  }
}

TEST(Loss, OfARoundIsNoGoodEnd) {
  Cluster cluster(counting(2, ServerMode::kSync), keeping());
  count_pushes(cluster);
  cluster.begin();
  cluster.materialize();
  cluster.auto_persist = false;
  for (const Rank rank : {0, 1}) cluster.start_step(rank);
  cluster.materialize();
  for (const Rank rank : {0, 1}) ASSERT_TRUE(cluster.end_step(rank));
  cluster.crash_server();
  cluster.restart_server();
  cluster.auto_persist = true;
  cluster.start_worker(1);
  cluster.connect_all();
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 1U);
  EXPECT_EQ(cluster.server->counters().lost, 1U);
  leave(cluster, {0, 1});
  ASSERT_TRUE(cluster.server->finished());
  EXPECT_FALSE(cluster.server->ended_well());
}

TEST(Loss, OfRoundsThatNobodyCanRepeatIsNoGoodEnd) {
  JobSpec spec = counting(2, ServerMode::kSync);
  spec.backup_workers = 1;
  Cluster cluster(spec, keeping());
  count_pushes(cluster);
  cluster.begin();
  cluster.materialize();
  cluster.auto_persist = false;
  // Round 1 is of worker 0, which never hears of it; worker 1 comes too late and pulls version 1.
  cluster.start_step(0);
  while (cluster.deliver_to_server(0)) {
  }
  cluster.start_step(1);
  while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) {
  }
  cluster.crash_server();
  cluster.restart_server();
  cluster.auto_persist = true;
  cluster.start_worker(0);
  cluster.connect_all();
  cluster.materialize();
  leave(cluster, {0, 1});
  ASSERT_TRUE(cluster.server->finished());
  EXPECT_THAT(*cluster.server->finished(), HasSubstr("2 of 2 updates are missing"));
  EXPECT_FALSE(cluster.server->ended_well());
}

}  // namespace
}  // namespace cohort::server
