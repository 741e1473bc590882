#include "core/failpoint.h"

#include <gmock/gmock.h>

#include <csignal>

#include "core/clock.h"
#include "core/error.h"

namespace cohort {
namespace {

#ifdef COHORT_FAILPOINTS

class Failpoint : public testing::Test {
 protected:
  void TearDown() override { set_failpoints(""); }
};

void reach(const char* name) { COHORT_FAILPOINT(name); }

TEST_F(Failpoint, IsNothingUntilItIsSet) {
  EXPECT_NO_THROW(reach("a"));
  set_failpoints("b=error");
  EXPECT_NO_THROW(reach("a"));
}

TEST_F(Failpoint, ThrowsEveryTimeWithoutANumber) {
  set_failpoints("a=error;b=error");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(reach("a"), FileError);
    EXPECT_THROW(reach("b"), FileError);
  }
  set_failpoints("");
  EXPECT_NO_THROW(reach("a"));
}

TEST_F(Failpoint, ThrowsOnlyAtTheTimeGiven) {
  set_failpoints("a=error@3");
  reach("a");
  reach("a");
  EXPECT_THROW(reach("a"), FileError);
  EXPECT_NO_THROW(reach("a"));
}

TEST_F(Failpoint, CountsAfreshWhenSetAgain) {
  set_failpoints("a=error@2");
  reach("a");
  set_failpoints("a=error@2");
  EXPECT_NO_THROW(reach("a"));
  EXPECT_THROW(reach("a"), FileError);
}

TEST_F(Failpoint, NamesItselfInTheMessage) {
  set_failpoints("checkpoint.rename=error");
  try {
    reach("checkpoint.rename");
    FAIL() << "did not throw";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("checkpoint.rename"));
  }
}

TEST_F(Failpoint, RefusesMalformedTextAndKeepsTheTable) {
  set_failpoints("a=error");
  for (const char* text : {"a", "=error", "a=", "a=burn", "a=error@", "a=error@x", "a=error@-1",
                           "a=error@1@2", "a=sleep", "a=sleep:", "a=sleep:x", "b=error;c"}) {
    EXPECT_THROW(set_failpoints(text), ConfigError) << text;
  }
  EXPECT_THROW(reach("a"), FileError);
  EXPECT_NO_THROW(reach("b"));
}

TEST_F(Failpoint, SleepsAndGoesOn) {
  set_failpoints("a=sleep:50@2");
  const auto start = Clock::now();
  reach("a");
  EXPECT_NO_THROW(reach("a"));
  EXPECT_GE(seconds_between(start, Clock::now()), 0.05);
}

TEST(FailpointDeathTest, CrashIsAKillThatNoHandlerSees) {
  EXPECT_EXIT(
      {
        set_failpoints("a=crash@2");
        reach("a");
        reach("a");
      },
      testing::KilledBySignal(SIGKILL), "");
}

#else

TEST(Failpoint, CannotBeSetInABuildWithout) {
  EXPECT_NO_THROW(set_failpoints(""));
  EXPECT_THROW(set_failpoints("a=error"), ConfigError);
}

#endif

}  // namespace
}  // namespace cohort
