#include "network/record_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

namespace cohort {
namespace {

// Against queues that own their memory: whatever streams do by turns, each finds its own bytes.
TEST(RecordBuffer, KeepsTheBytesOfStreamsThatShareMemory) {
  std::mt19937 random(7);
  const auto up_to = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  std::array<RecordBuffer, 3> passages;
  std::array<std::deque<std::byte>, 3> expected;
  std::uint8_t next = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    const std::size_t which = up_to(passages.size() - 1);
    RecordBuffer& passage = passages[which];
    std::deque<std::byte>& bytes = expected[which];
    const auto room = passage.room();
    ASSERT_EQ(room.size(), RecordBuffer::kSize - bytes.size());
    const std::size_t put = std::min(room.size(), up_to(turn % 2 == 0 ? 100 : 60000));
    for (std::size_t place = 0; place < put; ++place) {
      room[place] = std::byte{++next};
      bytes.push_back(room[place]);
    }
    passage.put(put);
    const std::size_t taken = up_to(2) == 0 ? bytes.size() : up_to(bytes.size());
    passage.take(taken);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    if (up_to(1) == 0) passage.rest();
    ASSERT_TRUE(std::ranges::equal(passage.bytes(), bytes)) << "after turn " << turn;
  }
}

TEST(RecordBuffer, HandsMemoryOnOnceLittleIsLeft) {
  RecordBuffer first;
  RecordBuffer second;
  const std::byte* memory = first.room().data();
  first.put(10 * kLongestRecord);
  first.rest();
  EXPECT_NE(second.room().data(), memory);  // the first still needs it
  second.rest();
  first.take(9 * kLongestRecord);
  first.rest();
  RecordBuffer third;
  EXPECT_EQ(third.room().data(), memory);
}

}  // namespace
}  // namespace cohort
