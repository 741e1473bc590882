// Jobs whose workers come back with a checkpoint, and when a server has nothing more to wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "jobs.h"

namespace cohort::server {
namespace {

class Restart : public ::testing::TestWithParam<ServerMode> {
 protected:
  static ServerOptions keeping() {
    ServerOptions options;
    options.keeps_state = true;
    return options;
  }

  // New processes, which have all been started with a checkpoint.
  static void start_again(Cluster& cluster) {
    for (Rank rank = 0; rank < cluster.spec.workers; ++rank) {
      cluster.disconnect(rank);
      cluster.start_worker(rank, membership::JoinKind::kCheckpoint);
    }
  }

  // Worker 0's checkpoint: sevens, made by three pushes of each.
  static void bring(Cluster& cluster) {
    const std::vector<float> sevens(static_cast<std::size_t>(cluster.spec.size), 7.0F);
    const bool sync = cluster.spec.mode == ServerMode::kSync;
    ASSERT_TRUE(cluster.client(0).needs_values());
    cluster.client(0).initialize(sevens, {},
                                 {.version = sync ? 3U : 6U, .skipped = 0, .pushes = {3, 3}});
    for (const Rank rank : {0, 1})
      cluster.client(rank).pull(cluster.at(rank).values, kExactParameters);
    cluster.materialize();
  }

  static void expect_the_checkpoint(Cluster& cluster) {
    for (const Rank rank : {0, 1}) {
      ASSERT_TRUE(cluster.client(rank).pulled());
      EXPECT_EQ(cluster.at(rank).values[0], 7.0F);
      EXPECT_EQ(cluster.client(rank).progress().pushes, (std::vector<std::uint64_t>{3, 3}));
    }
    EXPECT_EQ(cluster.server->counters().pushes, 6U);
  }
};

TEST_P(Restart, AllWithACheckpointTakeTheJobBackToIt) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.start_step(rank);
  cluster.materialize();
  ASSERT_GT(cluster.server->version(), 0U);
  start_again(cluster);
  cluster.connect(1);
  cluster.materialize();
  EXPECT_FALSE(cluster.client(1).membership().joined()) << "worker 0 has the model";
  cluster.connect(0);
  cluster.pass(std::chrono::milliseconds(200));
  cluster.materialize();
  ASSERT_TRUE(cluster.client(0).membership().joined());
  ASSERT_TRUE(cluster.client(1).membership().joined());
  bring(cluster);
  expect_the_checkpoint(cluster);
}

TEST_P(Restart, AServerFromItsSnapshotGoesBackToo) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.materialize();
  cluster.crash_server();
  cluster.restart_server();
  start_again(cluster);
  cluster.connect_all();
  cluster.materialize();
  bring(cluster);
  expect_the_checkpoint(cluster);
  // And what it goes back to is what the next snapshot holds.
  cluster.crash_server();
  cluster.restart_server();
  cluster.connect_all();
  cluster.materialize();
  for (const Rank rank : {0, 1}) EXPECT_TRUE(cluster.client(rank).membership().joined());
  EXPECT_EQ(cluster.server->parameters()[0], 7.0F);
}

TEST_P(Restart, OneWithACheckpointTakesItsPlaceAmongThoseUnderWay) {
  Cluster cluster(counting(2, GetParam()));
  cluster.begin();
  cluster.disconnect(0);
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);
  cluster.connect(0);
  cluster.pass(std::chrono::milliseconds(3000));
  cluster.materialize();
  ASSERT_TRUE(cluster.client(0).membership().joined());
  EXPECT_FALSE(cluster.client(0).needs_values()) << "the others' model counts";
}

TEST_P(Restart, AWorkerThatMayComeBackToItsServerIsWaitedFor) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.materialize();
  cluster.crash_server();
  cluster.restart_server();
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);  // worker 1 lives
  cluster.connect(0);
  cluster.pass(std::chrono::milliseconds(1000));
  EXPECT_FALSE(cluster.client(0).membership().joined());
  cluster.connect(1);
  cluster.materialize();
  cluster.pass(std::chrono::milliseconds(1000));
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().joined());
  EXPECT_FALSE(cluster.client(0).needs_values());
}

TEST_P(Restart, OneThatComesWhenTheOthersAreDoneTakesItsPlace) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.client(0).leave();
  cluster.materialize();
  cluster.disconnect(0);
  cluster.disconnect(1);
  cluster.start_worker(1, membership::JoinKind::kCheckpoint);
  cluster.connect(1);
  cluster.pass(std::chrono::seconds(5));
  cluster.materialize();
  EXPECT_TRUE(cluster.client(1).membership().joined());
}

TEST_P(Restart, AnOlderSnapshotIsOfAnotherJobToThoseWhoKnowTheNewer) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.materialize();
  cluster.crash_server();
  cluster.durable->newest = false;
  cluster.restart_server();
  cluster.connect_all();
  cluster.materialize();
  for (const Rank rank : {0, 1}) {
    ASSERT_TRUE(cluster.client(rank).membership().refused());
    EXPECT_THAT(*cluster.client(rank).membership().refused(), testing::HasSubstr("older snapshot"));
  }
  start_again(cluster);
  cluster.connect_all();
  cluster.materialize();
  cluster.pass(std::chrono::seconds(10));
  cluster.materialize();
  bring(cluster);
  expect_the_checkpoint(cluster);
}

INSTANTIATE_TEST_SUITE_P(Modes, Restart,
                         ::testing::Values(ServerMode::kSync, ServerMode::kAsync,
                                           ServerMode::kBounded));

TEST(End, AWorkerThatWasInterruptedIsWaitedFor) {
  for (const membership::LeaveKind second :
       {membership::LeaveKind::kDone, membership::LeaveKind::kInterrupted,
        membership::LeaveKind::kFailed}) {
    ServerOptions options;
    options.idle_exit = std::chrono::seconds(60);
    Cluster cluster(counting(2, ServerMode::kAsync), options);
    cluster.begin();
    cluster.client(0).leave();
    cluster.client(1).leave(second);
    cluster.materialize();
    for (const Rank rank : {0, 1}) cluster.disconnect(rank);
    cluster.pass(std::chrono::seconds(50));
    EXPECT_EQ(cluster.server->finished().has_value(),
              second != membership::LeaveKind::kInterrupted);
    EXPECT_EQ(cluster.server->ended_well(), second == membership::LeaveKind::kDone);
    cluster.pass(std::chrono::seconds(20));
    EXPECT_TRUE(cluster.server->finished().has_value());
  }
}

TEST(End, RoundsWaitAWhileForOthersToBeInterruptedToo) {
  Cluster cluster(counting(2, ServerMode::kSync));
  cluster.begin();
  const std::uint64_t before = cluster.server->version();
  cluster.client(1).leave(membership::LeaveKind::kInterrupted);
  cluster.materialize();
  cluster.start_step(0);
  cluster.materialize();
  cluster.pass(std::chrono::milliseconds(1800));
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), before);
  cluster.pass(std::chrono::milliseconds(400));
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), before + 1) << "it was for that one alone";
}

TEST(End, ARestoredServerWaitsForWorkersThatWereInterrupted) {
  ServerOptions options;
  options.keeps_state = true;
  Cluster cluster(counting(2, ServerMode::kSync), options);
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.client(rank).leave(membership::LeaveKind::kInterrupted);
  cluster.materialize();
  cluster.pass(std::chrono::seconds(10));
  cluster.materialize();
  cluster.crash_server();
  cluster.restart_server();
  cluster.pass(std::chrono::minutes(5));
  EXPECT_FALSE(cluster.server->finished().has_value());
}

// Its goodbye means that no server will wait for it again.
TEST(End, AFarewellIsOnDiskBeforeItIsAnswered) {
  ServerOptions options;
  options.keeps_state = true;
  Cluster cluster(counting(2, ServerMode::kAsync), options);
  cluster.begin();
  cluster.materialize();
  cluster.auto_persist = false;
  cluster.client(0).leave();
  cluster.materialize();
  EXPECT_FALSE(cluster.client(0).membership().left());
  cluster.auto_persist = true;
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().left());
}

TEST(Told, WorkersOfAJobThatTheServerWasNotStartedForAreRefused) {
  ServerOptions options;
  options.told = R"({"workers": 2, "server-mode": "sync", "unknown-there": 1})";
  Cluster agrees(counting(2, ServerMode::kSync), options);
  agrees.connect_all();
  agrees.materialize();
  EXPECT_FALSE(agrees.client(0).membership().refused());
  Cluster differs(counting(3, ServerMode::kAsync), options);
  differs.connect(0);
  differs.materialize();
  ASSERT_TRUE(differs.client(0).membership().refused());
  EXPECT_THAT(*differs.client(0).membership().refused(),
              testing::AllOf(testing::HasSubstr("--workers is 3 here and 2 where server 0 was"),
                             testing::HasSubstr("--server-mode is \"async\" here and \"sync\"")));
}

}  // namespace
}  // namespace cohort::server
