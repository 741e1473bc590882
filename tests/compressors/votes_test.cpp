#include "compressors/votes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/error.h"

namespace cohort::compressors {
namespace {

using testing::ElementsAre;

std::vector<float> votes_of(const std::vector<float>& values) {
  Bytes wire(100);  // what was there does not matter
  pack_votes(values, wire);
  std::vector<float> sums(values.size());
  add_votes(wire, sums);
  return sums;
}

TEST(Votes, AreTheSignsAndZeroStaysZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(votes_of({3, -2, 0, -0.0F, tiny, -tiny, nan, -nan, 1, -1}),
              ElementsAre(1, -1, 0, 0, 1, -1, 0, 0, 1, -1));
  EXPECT_THAT(votes_of({}), ElementsAre());
}

TEST(Votes, TakeABitEachAndTwoWhereThereAreZeros) {
  for (const std::size_t numel : {1U, 7U, 8U, 9U, 64U, 1000U}) {
    std::vector<float> values(numel);
    for (std::size_t i = 0; i < numel; ++i) values[i] = i % 3 == 0 ? -1.0F : 0.5F;
    Bytes wire;
    pack_votes(values, wire);
    EXPECT_EQ(wire.size(), (numel + 7) / 8);
    values[numel / 2] = 0;
    pack_votes(values, wire);
    EXPECT_EQ(wire.size(), 2 * ((numel + 7) / 8));
  }
}

TEST(Votes, AddUp) {
  Bytes one, other;
  pack_votes(std::vector<float>{1, -1, 0}, one);
  pack_votes(std::vector<float>{2, 2, -2}, other);
  std::vector<float> sums(3);
  add_votes(one, sums);
  add_votes(other, sums);
  EXPECT_THAT(sums, ElementsAre(2, 0, -1));
}

TEST(Votes, RefuseBytesThatNobodyPacks) {
  const auto refused = [](std::vector<unsigned> bytes, std::size_t numel) {
    Bytes wire;
    for (const unsigned byte : bytes) wire.push_back(static_cast<std::byte>(byte));
    std::vector<float> sums(numel, 7.0F);
    EXPECT_THROW(add_votes(wire, sums), PeerError);
    EXPECT_THAT(sums, testing::Each(7.0F));
  };
  refused({}, 3);
  refused({0, 0, 0}, 3);
  refused({1}, 0);
  refused({1, 1}, 3);  // a zero that is negative
  refused({8}, 3);     // beyond the last element
  refused({0, 0x10}, 3);
}

}  // namespace
}  // namespace cohort::compressors
