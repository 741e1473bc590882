// Whether the workers that come with a checkpoint are a job that begins again, or join one that is
// under way: what a server takes for which, and what it says to those it leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "jobs.h"

namespace cohort::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class Resume : public ::testing::TestWithParam<ServerMode> {
 protected:
  // All processes end without a word, the server too, and new ones have a checkpoint.
  static void crash_all(Cluster& cluster) {
    cluster.begin();
    cluster.materialize();
    cluster.crash_server();
    cluster.restart_server();
    for (const Rank rank : {0, 1}) cluster.start_worker(rank, membership::JoinKind::kCheckpoint);
  }

  // Both are in a job that has gone back: worker 0 brings sevens.
  static void expect_the_checkpoint(Cluster& cluster) {
    cluster.pass(milliseconds(200));
    cluster.materialize();
    ASSERT_TRUE(cluster.client(0).membership().joined());
    ASSERT_TRUE(cluster.client(1).membership().joined());
    ASSERT_TRUE(cluster.client(0).needs_values());
    const std::vector<float> sevens(static_cast<std::size_t>(cluster.spec.size), 7.0F);
    cluster.client(0).initialize(sevens, {}, {.version = 4, .skipped = 0, .pushes = {}});
    cluster.client(1).pull(cluster.at(1).values, kExactParameters);
    cluster.materialize();
    ASSERT_TRUE(cluster.client(1).pulled());
    EXPECT_EQ(cluster.at(1).values[0], 7.0F);
    EXPECT_EQ(cluster.server->version(), 4U);
  }

  // Of another job than before: more updates are asked for.
  static void extend(Cluster& cluster) {
    cluster.spec.settings = R"({"iterations": 9})";
    for (const Rank rank : {0, 1}) cluster.start_worker(rank, membership::JoinKind::kCheckpoint);
  }

  static void finish_and_restart(Cluster& cluster) {
    cluster.begin();
    for (const Rank rank : {0, 1}) cluster.client(rank).leave();
    cluster.materialize();
    cluster.crash_server();
    cluster.restart_server();
  }
};

TEST_P(Resume, ARestoredServerHoldsTheOthersUntilWorker0Comes) {
  Cluster cluster(counting(2, GetParam()), keeping());
  crash_all(cluster);
  cluster.connect(1);
  cluster.materialize();
  cluster.pass(seconds(25));
  cluster.materialize();
  EXPECT_FALSE(cluster.client(1).membership().joined())
      << "with the snapshot of a moment of its own";
  cluster.connect(0);
  cluster.materialize();
  expect_the_checkpoint(cluster);
}

TEST_P(Resume, SoDoesOneThatNothingHappenedTo) {
  Cluster cluster(counting(2, GetParam()));
  cluster.begin();
  for (const Rank rank : {0, 1}) {
    cluster.disconnect(rank);
    cluster.start_worker(rank, membership::JoinKind::kCheckpoint);
  }
  cluster.connect(1);
  cluster.materialize();
  cluster.pass(seconds(25));
  cluster.materialize();
  EXPECT_FALSE(cluster.client(1).membership().joined());
  cluster.connect(0);
  cluster.materialize();
  expect_the_checkpoint(cluster);
}

TEST_P(Resume, OthersThatHaveGoneOnWithoutWorker0NeedNotWaitForIt) {
  Cluster cluster(counting(2, GetParam()));
  count_pushes(cluster);
  cluster.begin();
  cluster.disconnect(0);
  cluster.pass(seconds(3));
  cluster.start_step(1);
  cluster.materialize();
  ASSERT_EQ(cluster.server->version(), 1U);
  cluster.disconnect(1);
  cluster.pass(seconds(15));
  cluster.start_worker(1, membership::JoinKind::kCheckpoint);
  cluster.connect(1);
  cluster.materialize();
  cluster.pass(milliseconds(200));
  cluster.materialize();
  EXPECT_TRUE(cluster.client(1).membership().joined());
  EXPECT_EQ(cluster.client(1).joined_body().progress, 1U);
}

TEST_P(Resume, AJobThatHadEndedGoesOnWithOtherSettings) {
  for (const Rank first : {0, 1}) {
    Cluster cluster(counting(2, GetParam()), keeping());
    finish_and_restart(cluster);
    extend(cluster);
    cluster.connect(first);
    cluster.materialize();
    cluster.pass(seconds(40));
    cluster.materialize();
    EXPECT_FALSE(cluster.client(first).membership().refused())
        << *cluster.client(first).membership().refused();
    EXPECT_FALSE(cluster.server->finished()) << *cluster.server->finished();
    cluster.connect(1 - first);
    cluster.materialize();
    expect_the_checkpoint(cluster);
  }
}

TEST_P(Resume, SettingsThatAreRefusedLeaveTheModelAsItIs) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.materialize();
  const std::vector<float> before = cluster.server->parameters();
  cluster.spec.servers = 2;
  cluster.spec.server = 1;
  for (const Rank rank : {0, 1}) {
    cluster.disconnect(rank);
    cluster.start_worker(rank, membership::JoinKind::kCheckpoint);
  }
  cluster.connect_all();
  cluster.materialize();
  cluster.pass(seconds(20));
  ASSERT_TRUE(cluster.client(0).membership().refused());
  EXPECT_THAT(*cluster.client(0).membership().refused(), HasSubstr("not server 1"));
  EXPECT_EQ(cluster.server->parameters(), before);
  ASSERT_NE(cluster.server->spec(), nullptr);
}

TEST_P(Resume, OneThatWasGivenUpAWhileAgoIsStillUnderWay) {
  Cluster cluster(counting(2, GetParam()));
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.disconnect(rank);
  cluster.pass(seconds(4));
  ASSERT_EQ(cluster.server->counters().evictions, 2U);
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);
  cluster.connect(0);
  cluster.materialize();
  cluster.pass(seconds(3));
  EXPECT_FALSE(cluster.client(0).membership().joined());
  cluster.connect(1);  // its network is back
  cluster.materialize();
  cluster.pass(milliseconds(200));
  cluster.materialize();
  EXPECT_FALSE(cluster.client(1).membership().refused());
  EXPECT_TRUE(cluster.client(1).membership().joined());
  EXPECT_TRUE(cluster.client(0).membership().joined());
  EXPECT_FALSE(cluster.client(0).needs_values());
}

TEST_P(Resume, AWorker0ThatIsGoneAgainTakesNothingBack) {
  Cluster cluster(counting(2, GetParam()));
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.disconnect(rank);
  cluster.pass(seconds(4));
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);
  cluster.connect(0);
  cluster.materialize();
  cluster.at(0).silent = true;
  cluster.pass(seconds(15));
  cluster.connect(1);
  cluster.materialize();
  EXPECT_FALSE(cluster.client(1).membership().refused());
}

TEST_P(Resume, OneThatWasAwayForLongIsToldWhatHasHappened) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.disconnect(rank);
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);
  cluster.connect(0);
  cluster.materialize();
  cluster.pass(seconds(15));
  cluster.materialize();
  ASSERT_TRUE(cluster.client(0).needs_values());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      cluster.crash_server();
      cluster.restart_server();
    }
    cluster.connect(1);
    cluster.materialize();
    ASSERT_TRUE(cluster.client(1).membership().refused());
    EXPECT_THAT(*cluster.client(1).membership().refused(),
                testing::AllOf(HasSubstr("went back to worker 0's checkpoint"),
                               HasSubstr("--resume"), Not(HasSubstr("without its state"))));
    cluster.disconnect(1);
  }
}

TEST_P(Resume, AnOlderSnapshotIsForgottenWithTheJob) {
  Cluster cluster(counting(2, GetParam()), keeping());
  cluster.begin();
  cluster.materialize();
  cluster.crash_server();
  cluster.durable->newest = false;
  cluster.restart_server();
  cluster.start_worker(0, membership::JoinKind::kCheckpoint);  // worker 1 knows the newer one
  cluster.connect(0);
  cluster.pass(seconds(15));
  cluster.materialize();
  ASSERT_TRUE(cluster.client(0).needs_values());
  cluster.connect(1);
  cluster.materialize();
  ASSERT_TRUE(cluster.client(1).membership().refused());
  EXPECT_THAT(*cluster.client(1).membership().refused(), Not(HasSubstr("older snapshot")));
}

TEST_P(Resume, OfTwoConnectionsOfAWorkerTheLatestIsLetIn) {
  Cluster cluster(counting(2, GetParam()), keeping());
  crash_all(cluster);
  cluster.connect(1);
  ASSERT_TRUE(cluster.deliver_to_server(1));
  // That process is gone, which the server has not noticed.
  cluster.start_worker(1, membership::JoinKind::kCheckpoint);
  cluster.connect(1);
  ASSERT_TRUE(cluster.deliver_to_server(1));
  cluster.auto_persist = false;  // worker 1 is joining for a while
  cluster.connect(0);
  cluster.materialize();
  cluster.pass(milliseconds(200));
  cluster.auto_persist = true;
  cluster.materialize();
  cluster.pass(milliseconds(200));
  cluster.materialize();
  expect_the_checkpoint(cluster);
}

TEST_P(Resume, Worker0TakesOneServerBackBecauseOthersWent) {
  // The connection is lost before the server hears of it, after that, or not at all.
  for (const int lost : {0, 1, 2}) {
    Cluster cluster(counting(2, GetParam()), keeping());
    cluster.begin();
    cluster.start_worker(0, membership::JoinKind::kCheckpoint);
    cluster.connect(0);
    cluster.pass(milliseconds(4000));
    cluster.materialize();
    ASSERT_TRUE(cluster.client(0).membership().joined());
    ASSERT_FALSE(cluster.client(0).needs_values()) << "worker 1 is under way";
    cluster.client(0).go_back();
    if (lost == 1) cluster.deliver_to_server(0);
    if (lost < 2) {
      cluster.disconnect(0);
      cluster.connect(0);
    }
    cluster.materialize();
    cluster.pass(seconds(1));
    cluster.materialize();
    EXPECT_TRUE(cluster.client(0).needs_values()) << lost;
    EXPECT_EQ(cluster.server->version(), 0U);
    cluster.notice_closed();
    cluster.connect(1);
    cluster.materialize();
    ASSERT_TRUE(cluster.client(1).membership().refused());
    EXPECT_THAT(*cluster.client(1).membership().refused(),
                HasSubstr("went back to worker 0's checkpoint"));
    cluster.start_worker(1, membership::JoinKind::kCheckpoint);
    cluster.connect(1);
    cluster.materialize();
    expect_the_checkpoint(cluster);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Resume,
                         ::testing::Values(ServerMode::kSync, ServerMode::kAsync,
                                           ServerMode::kBounded));

}  // namespace
}  // namespace cohort::server
