#include "transport/tcp.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "core/error.h"
#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::transport::test {
namespace {

using namespace std::chrono_literals;

// A member of the job that does not keep to the protocol of a lane.
TEST(Tcp, OutlivesAMessageToALaneThatIsNotOpen) {
  TcpNodeOptions options;
  options.job = network::job_id_of("test");
  options.size = 2;
  TcpNode node(options);
  for (const std::size_t length : {0, 100}) {
    network::test::RawPeer peer(node.address().port);
    peer.write(network::test::hello_bytes(network::test::worker(1), network::test::worker(0)));
    const Deadline soon = deadline_in(5s);
    while (peer.received().empty() && Clock::now() < soon) std::this_thread::sleep_for(1ms);
    peer.write(network::test::frame_bytes({.type = network::kFirstFreeType, .job = options.job},
                                          Bytes(length)));
    while (!peer.closed() && Clock::now() < soon) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(peer.closed()) << length;
  }
}

// Who connects says all in its greeting: the lane, what both must agree on, and who it is.
class TcpLaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TcpNodeOptions options;
    options.job = network::job_id_of("test");
    options.size = 3;
    for (options.rank = 0; options.rank < 3; ++options.rank) {
      nodes_.push_back(std::make_unique<TcpNode>(options));
    }
    lane_.number = 3;
    lane_.agreement = "a few processes";
    add_members(2);
  }
  void add_members(Rank until) {
    for (Rank rank = static_cast<Rank>(lane_.members.size()); rank < until; ++rank) {
      lane_.members.push_back(rank);
      lane_.addresses.push_back(nodes_[rank]->address());
    }
  }

  std::vector<std::unique_ptr<TcpNode>> nodes_;
  TcpLane lane_;
};

TEST_F(TcpLaneTest, TellsWhoIsConnectedToWhatTheOtherSaysOfItself) {
  std::unique_ptr<TcpTransport> early;
  std::thread first([&] {
    TcpLane lane = lane_;
    lane.introduction = "node5\nof two lines";
    early = nodes_[1]->connect(lane, deadline_in(10s));
  });
  std::this_thread::sleep_for(50ms);  // it comes before there is such a lane
  const auto late = nodes_[0]->connect(lane_, deadline_in(10s));
  first.join();
  ASSERT_TRUE(early);
  EXPECT_EQ(late->introduction(1), "node5\nof two lines");
  EXPECT_EQ(early->introduction(0), "");
  const Bytes said(3, std::byte{7});
  early->send(0, 1, said, deadline_in(5s));
  EXPECT_EQ(late->receive(1, 1, deadline_in(5s)).payload, said);
}

TEST_F(TcpLaneTest, RefusesWhoCountsOtherwise) {
  std::thread second([&] {
    TcpLane lane = lane_;
    lane.agreement = "many processes";
    EXPECT_THROW(nodes_[1]->connect(lane, deadline_in(10s)), ConfigError);
  });
  EXPECT_THROW(nodes_[0]->connect(lane_, deadline_in(500ms)), PeerError);
  second.join();
}

TEST_F(TcpLaneTest, WaitsForWhoWentAwayBeforeItWasWelcomed) {
  add_members(3);
  std::array<std::unique_ptr<TcpTransport>, 3> there;
  std::vector<std::thread> threads;
  const auto connect = [&](Rank rank) {
    threads.emplace_back(
        [&, rank] { there[rank] = nodes_[rank]->connect(lane_, deadline_in(10s)); });
  };
  connect(0);
  std::this_thread::sleep_for(200ms);  // so that there is a lane
  {
    network::test::RawPeer impatient(nodes_[0]->address().port);
    const Deadline soon = deadline_in(5s);
    impatient.write(network::encode_greeting(network::kHello, {.self = network::test::worker(1),
                                                               .peer = network::test::worker(0),
                                                               .silence = 3s,
                                                               .lane = 3,
                                                               .note = lane_.agreement + "\n"}));
    while (impatient.received().empty() && Clock::now() < soon) std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(50ms);
  connect(1);
  connect(2);
  for (std::thread& thread : threads) thread.join();
  const Bytes said(3, std::byte{7});
  there[1]->send(0, 1, said, deadline_in(5s));
  EXPECT_EQ(there[0]->receive(1, 1, deadline_in(5s)).payload, said);
}

}  // namespace
}  // namespace cohort::transport::test
