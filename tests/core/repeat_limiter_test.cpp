#include "core/repeat_limiter.h"

#include <gtest/gtest.h>

#include <string>

namespace cohort {
namespace {

using std::chrono::milliseconds;

TEST(RepeatLimiter, SaysAtMostSixtyLinesOfAKindAMinuteAndHowManyItLeftOut) {
  RepeatLimiter limiter;
  const Clock::time_point start{};
  int said = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto line = limiter.admit("lost worker " + std::to_string(i), start + milliseconds(i));
    if (line) {
      ++said;
      EXPECT_EQ(*line, "lost worker " + std::to_string(i));
    }
  }
  EXPECT_EQ(said, 60);
  EXPECT_EQ(limiter.admit("lost worker 1", start + std::chrono::minutes(1)),
            "lost worker 1 (and 2940 lines like it before)");
  EXPECT_EQ(limiter.admit("lost worker 2", start + std::chrono::minutes(1)), "lost worker 2");
}

TEST(RepeatLimiter, CountsEachKindApart) {
  RepeatLimiter limiter;
  for (int i = 0; i < 100; ++i) limiter.admit("server 0 is gone; trying again", {});
  EXPECT_EQ(limiter.admit("worker 1 has joined", {}), "worker 1 has joined");
}

TEST(RepeatLimiter, RemembersABoundedNumberOfKinds) {
  RepeatLimiter limiter;
  std::string line = "a";
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE(limiter.admit(line, {}));
    line += 'a';
  }
}

}  // namespace
}  // namespace cohort
