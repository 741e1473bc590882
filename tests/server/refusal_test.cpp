#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "jobs.h"
#include "server/parameter_server.h"

namespace cohort::server {
namespace {

using std::chrono::milliseconds;

TEST(Refusal, RefusesWhoDoesNotBelong) {
  Cluster cluster(counting(2, ServerMode::kAsync));
  cluster.connect(0);
  cluster.materialize();
  const auto refusal = [&](const JobSpec& spec, Rank rank) {
    Cluster::Worker stranger;
    ClientOptions options;
    options.worker = rank;
    options.spec = spec;
    ShardClient client(options, stranger);
    cluster.server->on_connected(++cluster.last_connection, rank, cluster.now);
    cluster.owner[cluster.last_connection] = 1;
    cluster.at(1).connection = cluster.last_connection;
    client.on_connected(cluster.now);
    const Parcel join = stranger.to_server.front();
    cluster.server->on_frame(cluster.last_connection, join.header, join.payload(), cluster.now);
    std::string why = "nothing was said";
    for (const Parcel& frame : cluster.at(1).to_worker) {
      client.on_frame(frame.header, frame.payload(), cluster.now);
      if (client.membership().refused()) why = *client.membership().refused();
    }
    cluster.at(1).to_worker.clear();
    return why;
  };
  JobSpec other = cluster.spec;
  other.schedule_options.lr = 0.5;
  other.settings = R"({"batch-size": 7})";
  EXPECT_EQ(refusal(other, 1),
            "--batch-size is 7 here and not set at the others; --lr is 0.5 here and 1.0 at the "
            "others");
  EXPECT_EQ(refusal(cluster.spec, 2), "there is no worker 2 in a job of 2");
  JobSpec swapped = cluster.spec;
  swapped.servers = 2;
  swapped.server = 1;
  EXPECT_NE(refusal(swapped, 1).find("this is server 0, not server 1"), std::string::npos);
}

TEST(Refusal, AServerWithoutItsStateRefusesThoseWhoKnewTheOldOne) {
  Cluster cluster(counting(1, ServerMode::kAsync));
  cluster.begin();
  cluster.crash_server();
  cluster.restart_server();
  cluster.connect(0);
  cluster.materialize();
  ASSERT_TRUE(cluster.client(0).membership().refused().has_value());
  EXPECT_NE(cluster.client(0).membership().refused()->find("--state-dir"), std::string::npos);
}

TEST(Refusal, ARankStartedTwiceIsToldSoAndOneThatWasRestartedIsNot) {
  Cluster cluster(counting(1, ServerMode::kAsync));
  cluster.begin();
  const membership::ConnectionId first = *cluster.at(0).connection;
  Cluster::Worker second;
  ShardClient client({.worker = 0, .spec = cluster.spec}, second);
  client.on_connected(cluster.now);
  const Parcel join = second.to_server.front();
  const auto try_to_join = [&](bool first_lives) {
    const membership::ConnectionId connection = ++cluster.last_connection;
    cluster.owner[connection] = 0;
    cluster.at(0).connection = connection;
    cluster.server->on_connected(connection, 0, cluster.now);
    cluster.server->on_frame(connection, join.header, join.payload(), cluster.now);
    for (int i = 0; i < 50; ++i) {
      cluster.now += milliseconds(100);
      if (first_lives) cluster.server->on_heard(first, cluster.now);
      cluster.server->on_heard(connection, cluster.now);
      cluster.server->on_tick(cluster.now);
    }
    const network::FrameType type = cluster.at(0).to_worker.front().header.type;
    cluster.at(0).to_worker.clear();
    return static_cast<membership::MemberFrame>(type);
  };
  EXPECT_EQ(try_to_join(true), membership::MemberFrame::kRefused);
  EXPECT_EQ(try_to_join(false), membership::MemberFrame::kJoined);
}

// Every frame that no honest worker sends ends its connection, and harms nobody else.
TEST(Refusal, LiesEndTheConnectionAndNothingElse) {
  struct Lie {
    ServerFrame type;
    std::uint64_t sequence, place;
    std::uint32_t detail;
    std::size_t bytes;
  };
  const std::vector<Lie> lies = {
      {ServerFrame::kPush, 0, 0, 0, 64},
      {ServerFrame::kPush, 3, 0, 0, 64},
      {ServerFrame::kPush, 1, 4, 0, 64},
      {ServerFrame::kPush, 1, 0, 0, 68},
      {ServerFrame::kPush, 1, 0, 0, 63},
      {ServerFrame::kPush, 1, 0, 0, 0},
      {ServerFrame::kPush, 1, ~0ULL, 0, 4},
      {ServerFrame::kPull, 1, 0, 7, 0},
      {ServerFrame::kInitialized, 1ULL << 60, 0, 0, 0},
      {ServerFrame::kCommitted, 1, 0, 0, 3},
      {ServerFrame::kCommitted, 1, 0, 0, 0},
      {ServerFrame::kCommitted, 9, 0, 0, 1},
      {static_cast<ServerFrame>(membership::MemberFrame::kJoin), 0, 0, 0, 3},
      {ServerFrame::kAck, 0, 0, 0, 0},
      {static_cast<ServerFrame>(999), 0, 0, 0, 0}};
  for (const Lie& lie : lies) {
    Cluster cluster(counting(2, ServerMode::kAsync));
    cluster.begin();
    network::FrameHeader header{.type = static_cast<network::FrameType>(lie.type)};
    header.incarnation = 1;
    header.sequence = lie.sequence;
    header.place = lie.place;
    header.detail = lie.detail;
    const Bytes payload(lie.bytes);
    cluster.at(1).send(header, payload, network::Kept::kCopy);
    cluster.materialize();
    const bool harmless = lie.type == ServerFrame::kInitialized;  // the values were there already
    EXPECT_EQ(cluster.errors.size(), harmless ? 0U : 1U) << header.type << " " << lie.sequence;
    cluster.start_step(0);
    cluster.materialize();
    EXPECT_TRUE(cluster.end_step(0));
    EXPECT_EQ(cluster.server->version(), 1U);
    cluster.connect_all();
    cluster.materialize();
    cluster.start_step(1);
    cluster.materialize();
    EXPECT_TRUE(cluster.end_step(1));
  }
}

TEST(Refusal, RandomFramesNeverBreakIt) {
  RandomStream random(11, "lies");
  for (int round = 0; round < 300; ++round) {
    const auto mode = static_cast<ServerMode>(random.below(3));
    Cluster cluster(counting(2, mode), random.below(2) == 0 ? ServerOptions{} : keeping());
    cluster.begin();
    for (int i = 0; i < 60; ++i) {
      network::FrameHeader header{
          .type = static_cast<network::FrameType>(network::kFirstFreeType + random.below(9))};
      header.incarnation = random.below(3);
      header.sequence = random.below(5);
      header.place = random.below(8) == 0 ? random() : random.below(18);
      header.detail = static_cast<std::uint32_t>(random.below(6) == 0 ? random() : random.below(3));
      const Bytes payload(random.below(2) == 0 ? random.below(70) : 64);
      const Rank rank = static_cast<Rank>(random.below(2));
      if (cluster.at(rank).connection) cluster.at(rank).send(header, payload, network::Kept::kCopy);
      cluster.materialize();
      cluster.notice_closed();
      if (random.below(4) == 0) cluster.connect_all();
      if (random.below(8) == 0) cluster.pass(std::chrono::milliseconds(500));
    }
    for (const float value : cluster.server->parameters()) ASSERT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace cohort::server
