#include "server/messages.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "server/numbers.h"

namespace cohort::server {
namespace {

TEST(Messages, TheAnswerToAJoinIsTheSameAfterTravelling) {
  const JoinedBody body{.applied = 0x0123456789abcdefULL,
                        .durable = 2,
                        .version = 1ULL << 40,
                        .progress = 5,
                        .initialized = true,
                        .keeps_state = false,
                        .applied_before = 77,
                        .in_model_before = true};
  const Bytes bytes = encode(body);
  EXPECT_EQ(decode_joined(bytes), body);
  EXPECT_EQ(bytes[0], std::byte{0xef});  // little-endian
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode_joined(std::span(bytes).first(size)), PeerError);
  }
  Bytes odd = bytes;
  odd.back() = std::byte{2};
  EXPECT_THROW(decode_joined(odd), PeerError);
}

TEST(Messages, ASetOfWorkersIsTheSameAfterTravelling) {
  for (const int of : {1, 7, 8, 9, 64, 1000}) {
    for (const std::vector<Rank>& workers :
         {std::vector<Rank>{}, std::vector<Rank>{0}, std::vector<Rank>{0, of - 1}}) {
      std::vector<Rank> expected = workers;
      if (of == 1 && workers.size() == 2) expected = {0};
      const Bytes bytes = encode_workers(workers, of);
      EXPECT_EQ(bytes.size(), static_cast<std::size_t>((of + 7) / 8));
      EXPECT_EQ(decode_workers(bytes, of), expected);
    }
  }
}

TEST(Messages, ASetOfOtherWorkersIsAPeerError) {
  EXPECT_THROW(decode_workers(Bytes(1, std::byte{0x08}), 3), PeerError);
  EXPECT_THROW(decode_workers(Bytes(2), 3), PeerError);
  EXPECT_THROW(decode_workers({}, 3), PeerError);
}

TEST(Numbers, VersionsAreFoundFromTheirLowBits) {
  EXPECT_EQ(version_near(10, 7), 7U);
  EXPECT_EQ(version_near(10, 12), 12U);
  EXPECT_EQ(version_near((1ULL << 32) + 3, 0xffffffffU), (1ULL << 32) - 1);
  EXPECT_EQ(version_near((1ULL << 32) - 2, 1), (1ULL << 32) + 1);
  EXPECT_EQ(version_near(3, 0xfffffff0U), 0U);  // before the first
}

}  // namespace
}  // namespace cohort::server
