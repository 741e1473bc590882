// How workers come back to a server, or do not: after its restart, and beside one another.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "jobs.h"
#include "server/parameter_server.h"

namespace cohort::server {
namespace {

using std::chrono::milliseconds;

// The snapshot on disk is of version 0, whatever comes after it.
void begin_without_disk(Cluster& cluster) {
  count_pushes(cluster);
  cluster.begin();
  cluster.materialize();
  cluster.auto_persist = false;
}

void restart(Cluster& cluster) {
  cluster.crash_server();
  cluster.restart_server();
  cluster.auto_persist = true;
}

TEST(Return, AReplayThatIsAnnouncedAndNeverComesIsGivenUp) {
  Cluster cluster(counting(2, ServerMode::kSync), keeping());
  begin_without_disk(cluster);
  for (const Rank rank : {0, 1}) cluster.start_step(rank);
  cluster.materialize();
  for (const Rank rank : {0, 1}) ASSERT_TRUE(cluster.end_step(rank));
  restart(cluster);
  cluster.connect_all();
  // Worker 1 joins, is heard all the time, and repeats nothing.
  ASSERT_TRUE(cluster.deliver_to_server(1));
  ASSERT_TRUE(cluster.deliver_to_worker(1));
  cluster.at(1).to_server.clear();
  while (cluster.deliver_to_server(0) || cluster.deliver_to_worker(0)) {
  }
  cluster.start_step(0);
  cluster.pass(milliseconds(4900));
  EXPECT_EQ(cluster.server->version(), 0U);
  EXPECT_EQ(cluster.server->counters().evictions, 0U);
  cluster.pass(milliseconds(400));
  EXPECT_EQ(cluster.server->counters().evictions, 1U);
  EXPECT_EQ(cluster.server->counters().lost, 1U);
  while (cluster.deliver_to_server(0) || cluster.deliver_to_worker(0)) {
  }
  EXPECT_EQ(cluster.server->version(), 2U);
  EXPECT_TRUE(cluster.end_step(0));
}

TEST(Return, AVersionThatWasPulledIsNotGivenToOtherValues) {
  JobSpec spec = counting(2, ServerMode::kSync);
  spec.backup_workers = 1;
  Cluster cluster(spec, keeping());
  begin_without_disk(cluster);
  // Round 1 is of worker 0, which never hears of it; worker 1 comes too late and pulls version 1.
  cluster.start_step(0);
  while (cluster.deliver_to_server(0)) {
  }
  cluster.start_step(1);
  while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) {
  }
  ASSERT_TRUE(cluster.end_step(1));
  ASSERT_EQ(cluster.client(1).version(), 1U);
  const std::vector<float> pulled = cluster.at(1).values;
  restart(cluster);
  cluster.start_worker(0);  // the only one that could repeat it is gone
  cluster.connect_all();
  cluster.materialize();
  cluster.advance(0);
  cluster.materialize();
  cluster.advance(0);
  EXPECT_NE(cluster.at(0).values, pulled);
  EXPECT_EQ(cluster.client(0).version(), 2U);
  // A gradient of the version that is no more is dropped, and its worker goes on.
  cluster.start_step(1);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(1));
  EXPECT_EQ(cluster.at(1).steps.back().outcome.kind, PushOutcome::Kind::kDropped);
  EXPECT_EQ(cluster.at(1).values, cluster.at(0).values);
  EXPECT_EQ(cluster.client(1).version(), 2U);
}

TEST(Return, ALastLookBesideAPushDoesNotMakeItsRoundWithoutTheOthers) {
  Cluster cluster(counting(2, ServerMode::kSync));
  count_pushes(cluster);
  cluster.begin();
  cluster.start_step(0);
  cluster.client(0).pull(cluster.at(0).values, kPullWhenAlone);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 0U);
  EXPECT_FALSE(cluster.client(0).pulled());
  cluster.start_step(1);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(1));
  EXPECT_EQ(cluster.server->version(), 1U);
  EXPECT_EQ(cluster.server->counters().pushes, 2U);
  EXPECT_FALSE(cluster.client(0).pulled());
  cluster.client(1).leave();
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).pulled());
}

TEST(Return, APlaceWhoseConnectionBrokeIsNotGivenAwayAtOnce) {
  Cluster cluster(counting(1, ServerMode::kAsync));
  count_pushes(cluster);
  cluster.begin();
  cluster.start_step(0);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(0));
  // Another process of this rank asks for the place, and is made to wait.
  const membership::ConnectionId other = 1000;
  cluster.owner[other] = 0;
  network::FrameHeader join{.type =
                                static_cast<network::FrameType>(membership::MemberFrame::kJoin)};
  const Bytes payload =
      membership::encode(membership::JoinRequest{.job = to_json(cluster.spec).dump()});
  join.length = static_cast<std::uint32_t>(payload.size());
  cluster.server->on_connected(other, 0, cluster.now);
  cluster.server->on_frame(other, join, payload, cluster.now);
  cluster.pass(milliseconds(300));
  cluster.disconnect(0);
  cluster.pass(milliseconds(200));
  cluster.connect(0);
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().joined());
  EXPECT_EQ(cluster.client(0).membership().incarnation(), 1U);
  EXPECT_EQ(cluster.client(0).membership().rejoined(), 0U);
  // The other one is stopped by then: it gets nothing though the first has gone.
  cluster.pass(milliseconds(2000));
  cluster.disconnect(0);
  cluster.pass(milliseconds(1000));
  cluster.connect(0);
  cluster.materialize();
  EXPECT_EQ(cluster.client(0).membership().incarnation(), 1U);
}

}  // namespace
}  // namespace cohort::server
