#include "membership/messages.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::membership {
namespace {

TEST(MemberFrames, AJoinIsTheSameAfterTravelling) {
  const Bytes bytes = encode(JoinRequest{.conversation = Conversation::kBestModel,
                                         .kind = JoinKind::kGoBack,
                                         .lineage = 0x0123456789abcdefULL,
                                         .job = "{}"});
  const JoinRequest request = decode_join(bytes);
  EXPECT_EQ(request.conversation, Conversation::kBestModel);
  EXPECT_EQ(request.kind, JoinKind::kGoBack);
  EXPECT_EQ(request.lineage, 0x0123456789abcdefULL);
  EXPECT_EQ(request.job, "{}");
  EXPECT_EQ(bytes[8], std::byte{0xef});  // little-endian
  for (std::size_t size = 0; size < 16; ++size) {
    EXPECT_THROW(decode_join(std::span(bytes).first(size)), PeerError);
  }
  Bytes odd = bytes;
  odd[4] = std::byte{3};
  EXPECT_THROW(decode_join(odd), PeerError);
}

TEST(MemberFrames, AJoinedFrameIsItsLineageAndTheRest) {
  const Bytes rest{std::byte{1}, std::byte{2}};
  const Bytes bytes = encode_joined(77, rest);
  EXPECT_EQ(joined_lineage(bytes), 77U);
  EXPECT_EQ(Bytes(joined_rest(bytes).begin(), joined_rest(bytes).end()), rest);
  EXPECT_THROW(joined_lineage(std::span(bytes).first(7)), PeerError);
}

TEST(MemberFrames, AnUnknownWayToLeaveIsNone) {
  network::FrameHeader header;
  header.detail = static_cast<std::uint32_t>(LeaveKind::kFailed);
  EXPECT_EQ(decode_leave(0, header), LeaveKind::kFailed);
  ++header.detail;
  EXPECT_THROW(decode_leave(0, header), PeerError);
}

}  // namespace
}  // namespace cohort::membership
