#include "network/send_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cohort::network {
namespace {

TEST(SendQueue, CopiesOnlyWhatLiesInTheMemoryThatChanges) {
  Bytes memory(300, std::byte{7});
  const auto part = [&](std::size_t begin) { return std::span(memory).subspan(begin, 100); };
  SendQueue queue(true, nullptr);
  for (const std::size_t begin : {0, 100, 200}) {
    queue.push({}, part(begin), {});
    queue.keep(Kept::kLent);
  }
  const auto copies = [&] {  // those that are not changed with the memory
    std::fill(memory.begin(), memory.end(), std::byte{0});
    std::array<iovec, 16> space;
    int sevens = 0;
    for (const iovec& piece : queue.next(space)) {
      const auto bytes = std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
      if (bytes.size() == 100 && bytes.front() == std::byte{7}) ++sevens;
    }
    std::fill(memory.begin(), memory.end(), std::byte{7});
    return sevens;
  };
  queue.copy_lent({});
  EXPECT_EQ(copies(), 0);
  queue.copy_lent(std::span(memory).subspan(199, 1));
  EXPECT_EQ(copies(), 1);
  queue.copy_lent(std::span(memory).subspan(199, 2));  // the end of one, the beginning of another
  EXPECT_EQ(copies(), 2);
  queue.copy_lent();
  EXPECT_EQ(copies(), 3);
  EXPECT_EQ(queue.copied_bytes(), 0U);  // only what nobody lent is counted
  queue.push({}, part(0), {});
  queue.keep(Kept::kCopy);
  EXPECT_EQ(queue.copied_bytes(), 100U);
}

}  // namespace
}  // namespace cohort::network
