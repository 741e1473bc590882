#include "membership/membership_client.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"

namespace cohort::membership {
namespace {

using Event = MembershipClient::Event;

class ClientOfOne : public ::testing::Test {
 protected:
  Event hear(MemberFrame type, std::uint64_t incarnation, const Bytes& payload = {}) {
    network::FrameHeader header{.type = static_cast<network::FrameType>(type)};
    header.incarnation = incarnation;
    return client.on_frame(header, payload);
  }
  void join(std::uint64_t incarnation) {
    client.on_connected();
    client.ask();
    ASSERT_EQ(hear(MemberFrame::kJoined, incarnation, encode_joined(7, {})), Event::kJoined);
  }

  struct Sent {
    network::FrameHeader header;
    Bytes payload;
  };
  std::vector<Sent> sent;
  MembershipClient client{
      Conversation::kParameters, "server 1", "{}",
      [this](const network::FrameHeader& header, std::span<const std::byte> payload) {
        sent.push_back({header, {payload.begin(), payload.end()}});
      }};
};

TEST_F(ClientOfOne, ComesBackWithItsIncarnationAndLineage) {
  join(5);
  EXPECT_TRUE(client.joined());
  client.on_lost();
  EXPECT_FALSE(client.joined());
  client.on_connected();
  client.ask();
  EXPECT_EQ(sent.back().header.incarnation, 5U);
  EXPECT_EQ(decode_join(sent.back().payload).lineage, 7U);
  EXPECT_THROW(hear(MemberFrame::kJoined, 6, encode_joined(7, {})), PeerError);
}

TEST_F(ClientOfOne, ThatIsFencedAsksForANewIncarnationAndNamesTheOldOne) {
  join(5);
  EXPECT_EQ(hear(MemberFrame::kFenced, 4), Event::kNothing);  // of another life
  EXPECT_EQ(hear(MemberFrame::kFenced, 5), Event::kFenced);
  EXPECT_EQ(client.rejoined(), 1U);
  client.ask();
  EXPECT_EQ(sent.back().header.incarnation, 0U);
  EXPECT_EQ(sent.back().header.place, 5U);
  hear(MemberFrame::kJoined, 6, encode_joined(7, {}));
  EXPECT_EQ(client.incarnation(), 6U);
}

TEST_F(ClientOfOne, LeavesOncePerConnectionAndIsGoneWithTheGoodbyeToThat) {
  join(5);
  client.send_leave();
  EXPECT_EQ(sent.size(), 1U);  // it does not leave yet
  hear(MemberFrame::kGoodbye, 5);
  EXPECT_FALSE(client.left());
  client.leave(LeaveKind::kInterrupted);
  client.send_leave();
  client.send_leave();
  EXPECT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent.back().header.detail, static_cast<std::uint32_t>(LeaveKind::kInterrupted));
  hear(MemberFrame::kGoodbye, 5);
  EXPECT_TRUE(client.left());
  client.ask();
  EXPECT_EQ(sent.size(), 2U);  // there is nothing to join for
}

TEST_F(ClientOfOne, ThatIsRefusedSaysWhyAndAsksNoMore) {
  client.on_connected();
  const std::string why = "no";
  const auto bytes = std::as_bytes(std::span(why));
  hear(MemberFrame::kRefused, 0, {bytes.begin(), bytes.end()});
  EXPECT_EQ(client.refused().value_or(""), "no");
  client.ask();
  EXPECT_TRUE(sent.empty());
}

TEST_F(ClientOfOne, AServerThatSpeaksBeforeItsAnswerBreaksTheProtocol) {
  client.on_connected();
  EXPECT_THROW(client.on_frame({.type = kFirstServerType}, {}), PeerError);
  EXPECT_THROW(hear(MemberFrame::kJoined, 0, encode_joined(7, {})), PeerError);
  EXPECT_THROW(hear(MemberFrame::kJoined, 1, Bytes(7)), PeerError);
}

}  // namespace
}  // namespace cohort::membership
