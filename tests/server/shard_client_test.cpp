#include "server/shard_client.h"

#include <gtest/gtest.h>

#include "jobs.h"

namespace cohort::server {
namespace {

using Kind = PushOutcome::Kind;

JobSpec of_size(int workers, ServerMode mode, std::int64_t size) {
  JobSpec spec;
  spec.workers = workers;
  spec.size = size;
  spec.mode = mode;
  spec.optimizer_options.momentum = 0;
  spec.schedule_options.lr = 1;
  return spec;
}

void step_by_one(Cluster& cluster) {
  cluster.gradient = [](Rank, int, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), -1.0F);
  };
}

std::vector<ServerFrame> types(const std::deque<Parcel>& frames) {
  std::vector<ServerFrame> found;
  for (const Parcel& frame : frames) found.push_back(static_cast<ServerFrame>(frame.header.type));
  return found;
}

TEST(ShardClient, SendsPartsAsTheyBecomeFinalAndPullsAheadOfTheLast) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 600000));
  cluster.begin();
  Cluster::Worker& worker = cluster.at(0);
  worker.client->begin_push(worker.gradients);
  EXPECT_TRUE(worker.to_server.empty());
  worker.client->extend_push(100);  // too little for a frame of its own
  EXPECT_TRUE(worker.to_server.empty());
  worker.client->extend_push(30000);
  ASSERT_EQ(worker.to_server.size(), 1U);
  EXPECT_EQ(worker.to_server.back().header.length, 120000U);
  EXPECT_EQ(static_cast<const void*>(worker.to_server.back().payload().data()),
            worker.gradients.data());  // straight from the arena
  worker.client->pull(worker.values);
  ASSERT_EQ(types(worker.to_server).back(), ServerFrame::kPull);
  EXPECT_EQ(worker.to_server.back().header.place, 1U);  // after the first push
  worker.client->extend_push(600000);
  const std::size_t pieces = (570000 * sizeof(float) + kPieceBytes - 1) / kPieceBytes;
  ASSERT_EQ(worker.to_server.size(), 1 + 1 + pieces);
  EXPECT_EQ(worker.to_server[2].header.place, 30000U);
  EXPECT_EQ(worker.to_server[3].header.length, kPieceBytes);
  cluster.materialize();
  EXPECT_TRUE(worker.client->pulled());
  EXPECT_EQ(worker.client->version(), 1U);
}

TEST(ShardClient, KeepsWhatIsNotDurableAndForgetsItThen) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 100), keeping());
  step_by_one(cluster);
  cluster.begin();
  cluster.auto_persist = false;
  for (int step = 1; step <= 3; ++step) {
    cluster.start_step(0);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(0));
    EXPECT_EQ(cluster.client(0).window(), static_cast<std::size_t>(step) * 400);
  }
  cluster.pass(std::chrono::seconds(6));
  ASSERT_EQ(cluster.persisting.size(), 1U);
  EXPECT_EQ(cluster.client(0).window(), 1200U);
  cluster.finish_persist();
  cluster.materialize();
  EXPECT_EQ(cluster.client(0).window(), 0U);
}

TEST(ShardClient, AsksForASnapshotAndWaitsWhenTheWindowIsFull) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 100), keeping());
  cluster.window_bytes = 1000;
  cluster.start_worker(0);
  step_by_one(cluster);
  cluster.begin();
  cluster.auto_persist = false;
  for (int step = 0; step < 2; ++step) {
    cluster.start_step(0);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(0));
  }
  EXPECT_EQ(cluster.persisting.size(), 1U);  // it has asked at 800 bytes
  cluster.start_step(0);
  cluster.materialize();
  EXPECT_FALSE(cluster.end_step(0));
  EXPECT_EQ(cluster.client(0).waits_for(), "server 0 to write its state to disk");
  EXPECT_EQ(cluster.server->version(), 2U);
  cluster.finish_persist();
  cluster.materialize();
  EXPECT_TRUE(cluster.end_step(0));
  EXPECT_EQ(cluster.server->version(), 3U);
}

TEST(ShardClient, KeepsNothingForAServerThatWritesNothing) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 100));
  cluster.begin();
  cluster.train(5);
  EXPECT_EQ(cluster.client(0).window(), 0U);
  EXPECT_TRUE(cluster.client(0).membership().left());
}

TEST(ShardClient, RepeatsRoundsOneByOneAndStreamsOtherPushes) {
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
    Cluster cluster(of_size(1, mode, 10), keeping());
    step_by_one(cluster);
    cluster.begin();
    cluster.auto_persist = false;
    for (int step = 0; step < 3; ++step) {
      cluster.start_step(0);
      cluster.materialize();
      ASSERT_TRUE(cluster.end_step(0));
    }
    const std::vector<float> before = cluster.at(0).values;
    cluster.crash_server();
    cluster.restart_server();
    EXPECT_EQ(cluster.server->version(), 0U);
    cluster.connect(0);
    cluster.deliver_to_server(0);
    cluster.deliver_to_worker(0);
    using Frames = std::vector<ServerFrame>;
    const Frames rounds = {ServerFrame::kCommitted, ServerFrame::kPush};
    const Frames stream = {ServerFrame::kPush, ServerFrame::kPush, ServerFrame::kPush};
    EXPECT_EQ(types(cluster.at(0).to_server), mode == ServerMode::kSync ? rounds : stream);
    cluster.materialize();
    EXPECT_EQ(cluster.server->version(), 3U);
    EXPECT_EQ(cluster.server->parameters(), before);
  }
}

TEST(ShardClient, NumbersOfRefusedPushesAreSkippedInAReplay) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 10), keeping());
  cluster.gradient = [](Rank, int step, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), step == 1 ? std::numeric_limits<float>::infinity() : -1.0F);
  };
  cluster.begin();
  cluster.auto_persist = false;
  for (int step = 0; step < 3; ++step) {
    cluster.start_step(0);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(0));
  }
  EXPECT_EQ(cluster.at(0).steps[1].outcome.kind, Kind::kRejected);
  cluster.crash_server();
  cluster.restart_server();
  cluster.connect(0);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 2U);
  EXPECT_EQ(cluster.server->parameters()[3], 2.0F);
  cluster.start_step(0);
  cluster.materialize();
  EXPECT_TRUE(cluster.end_step(0));
  EXPECT_EQ(cluster.server->version(), 3U);
  EXPECT_TRUE(cluster.errors.empty());
}

TEST(ShardClient, IsLetGoOnlyWhenAllItPushedIsOnDisk) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 10), keeping());
  step_by_one(cluster);
  cluster.begin();
  cluster.auto_persist = false;
  cluster.start_step(0);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(0));
  cluster.client(0).leave();
  cluster.materialize();
  EXPECT_FALSE(cluster.client(0).membership().left());
  EXPECT_EQ(cluster.client(0).waits_for(), "the farewell of server 0");
  cluster.crash_server();  // the snapshot is lost; the worker still has what it pushed
  cluster.restart_server();
  cluster.connect(0);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 1U);
  cluster.finish_persist();
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().left());
}

TEST(ShardClient, InitialValuesAreSentAgainUntilTheyCount) {
  Cluster cluster(of_size(2, ServerMode::kAsync, 10), keeping());
  std::fill(cluster.initial.begin(), cluster.initial.end(), 7.0F);
  cluster.connect_all();
  cluster.materialize();
  cluster.auto_persist = false;
  for (const Rank rank : {0, 1}) cluster.advance(rank);
  EXPECT_EQ(cluster.client(1).waits_for(), "the initial values of worker 0");
  cluster.materialize();
  EXPECT_FALSE(cluster.client(0).pulled());  // not before they are on disk
  cluster.crash_server();
  cluster.restart_server();
  cluster.connect_all();
  cluster.materialize();
  while (cluster.finish_persist()) cluster.materialize();
  EXPECT_TRUE(cluster.client(0).pulled());
  EXPECT_TRUE(cluster.client(1).pulled());
  EXPECT_EQ(cluster.at(1).values, cluster.initial);
}

TEST(ShardClient, AServerThatBreaksTheProtocolIsAPeerError) {
  struct Lie {
    ServerFrame type;
    std::uint64_t sequence, place;
    std::size_t bytes;
  };
  const std::vector<Lie> lies = {
      {static_cast<ServerFrame>(membership::MemberFrame::kJoined), 0, 0, 0},
      {static_cast<ServerFrame>(membership::MemberFrame::kJoined), 0, 0, 5},
      {ServerFrame::kAck, 5, 0, 1},
      {ServerFrame::kAck, 0, 0, 9},
      {ServerFrame::kValues, 99, 0, 40},
      {ServerFrame::kValues, 2, 3, 8},
      {ServerFrame::kValues, 2, 0, 44},
      {ServerFrame::kValues, 2, 0, 39},
      {ServerFrame::kValues, 2, ~0ULL, 8},
      {ServerFrame::kPush, 0, 0, 0},
      {static_cast<ServerFrame>(777), 0, 0, 0}};
  for (const Lie& lie : lies) {
    Cluster cluster(of_size(1, ServerMode::kSync, 10));
    cluster.begin();
    Cluster::Worker& worker = cluster.at(0);
    worker.client->pull(worker.values);
    network::FrameHeader header{.type = static_cast<network::FrameType>(lie.type)};
    header.incarnation = 1;
    header.sequence = lie.sequence;
    header.place = lie.place;
    header.length = static_cast<std::uint32_t>(lie.bytes);
    const Bytes payload(lie.bytes);
    const bool beyond = lie.place != 0 || lie.bytes > 40;
    EXPECT_FALSE(beyond && worker.client->place_for(header).has_value());
    EXPECT_THROW(worker.client->on_frame(header, payload, cluster.now), PeerError)
        << header.type << " " << lie.bytes;
  }
}

TEST(ShardClient, ValuesOfTwoVersionsAreNotOneAnswer) {
  Cluster cluster(of_size(1, ServerMode::kAsync, 10));
  cluster.begin();
  Cluster::Worker& worker = cluster.at(0);
  worker.client->pull(worker.values);
  network::FrameHeader header{.type = static_cast<network::FrameType>(ServerFrame::kValues)};
  header.incarnation = 1;
  header.sequence = 2;
  header.length = 20;
  header.detail = 4;
  const Bytes half(20);
  worker.client->on_frame(header, half, cluster.now);
  header.place = 5;
  header.detail = 5;
  EXPECT_THROW(worker.client->on_frame(header, half, cluster.now), PeerError);
}

}  // namespace
}  // namespace cohort::server
