#include "transport/metered.h"

#include <gtest/gtest.h>

#include "transport/in_process.h"
#include "transport/rank_threads.h"

namespace cohort::transport {
namespace {

std::vector<std::unique_ptr<MeteredTransport>> make_metered(int size) {
  std::vector<std::unique_ptr<MeteredTransport>> group;
  for (auto& member : make_in_process_group(size)) {
    group.push_back(std::make_unique<MeteredTransport>(std::move(member)));
  }
  return group;
}

TEST(MeteredTransport, CountsPayloadsAndMessagesWithEveryPeer) {
  const auto group = make_metered(3);
  group[0]->send(1, 1, Bytes(100), far());
  group[0]->send(1, 2, Bytes(), far());
  group[0]->send(2, 1, Bytes(7), far());
  EXPECT_EQ(group[0]->traffic(), (TransportTraffic{107, 0, 3, 0}));
  EXPECT_EQ(group[0]->traffic_with(1), (TransportTraffic{100, 0, 2, 0}));
  EXPECT_EQ(group[1]->traffic(), TransportTraffic{}) << "counted before it was received";

  group[1]->receive(0, 1, far());
  group[1]->receive_any(2, far());
  EXPECT_EQ(group[1]->traffic(), (TransportTraffic{0, 100, 0, 2}));
  EXPECT_FALSE(group[1]->try_receive(2).has_value());
  EXPECT_EQ(group[1]->traffic(), (TransportTraffic{0, 100, 0, 2}));
}

TEST(MeteredTransport, CountsWhatAMessageStandsFor) {
  const auto group = make_metered(2);
  for (const auto& member : group) {
    member->count_by([](std::span<const std::byte> payload) { return 1000 * payload.size(); });
  }
  group[0]->send(1, 7, Bytes(3), far());
  EXPECT_EQ(group[1]->receive(0, 7, far()).payload.size(), 3U);
  EXPECT_EQ(group[0]->traffic(), (TransportTraffic{3000, 0, 1, 0}));
  EXPECT_EQ(group[1]->traffic(), (TransportTraffic{0, 3000, 0, 1}));
}

TEST(MeteredTransport, LeavesOutWhatFailedAndWhatStayedAtHome) {
  auto group = make_metered(2);
  group[0]->send(0, 1, Bytes(50), far());
  group[0]->receive(0, 1, far());
  EXPECT_EQ(group[0]->traffic(), TransportTraffic{});
  EXPECT_EQ(group[0]->traffic_with(0), (TransportTraffic{50, 50, 1, 1}));

  group[1]->close();
  EXPECT_THROW(group[0]->send(1, 1, Bytes(9), far()), PeerError);
  EXPECT_EQ(group[0]->traffic(), TransportTraffic{});
}

TEST(MeteredTransport, CountsExactlyWhenSeveralThreadsSend) {
  const auto group = make_metered(2);
  run_ranks(4, [&](Rank) {
    for (int i = 0; i < 500; ++i) group[0]->send(1, 1, Bytes(3), far());
  });
  EXPECT_EQ(group[0]->traffic(), (TransportTraffic{6000, 0, 2000, 0}));
}

}  // namespace
}  // namespace cohort::transport
