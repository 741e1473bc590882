#include "launch/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/patience.h"

namespace cohort::launch {
namespace {

struct End {
  int status = 0;
  std::string errors;
};

// Runs a shell script. Once it has written `ready`, it is asked to stop `times` times.
End run_script(const std::string& script, int times = 0, const std::string& ready = "ready") {
  End end;
  end.status =
      supervise({"/bin/sh", "-c", script},
                {.errors = [&](std::string_view text) { end.errors += text; },
                 .stops = [&] { return end.errors.find(ready) == std::string::npos ? 0 : times; }});
  return end;
}

TEST(Supervise, GivesStatusAndErrorOutputAndAnEmptyInput) {
  const End end = run_script("cat; echo first >&2; printf last >&2; exit 7");
  EXPECT_EQ(end.status, 7);
  EXPECT_EQ(end.errors, "first\nlast");
}

TEST(Supervise, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(run_script("kill -KILL $$").status, 128 + SIGKILL);
}

TEST(Supervise, AsksOnceToSaveAndEnd) {
  const End end = run_script(
      "trap 'echo saved >&2; exit 130' USR1; echo ready >&2; while :; do sleep 0.05; done", 1);
  EXPECT_EQ(end.status, 130);
  EXPECT_THAT(end.errors, testing::HasSubstr("saved"));
}

TEST(Supervise, EndsAJobThatIsAskedTwice) {
  const End end = run_script(
      "trap '' USR1; trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.05; done", 2);
  EXPECT_EQ(end.status, 9);
}

TEST(Supervise, LooksForStopRequestsWhileTheJobFloodsItsErrorStream) {
  int pieces = 0;
  int since_look = 0;
  int most = 0;  // pieces between two looks
  // Several writers, and a reader that is slower: the stream is never empty.
  const int status =
      supervise({"/bin/sh", "-c", "yes a >&2 & yes b >&2 & yes c >&2 & exec yes d >&2"},
                {.errors =
                     [&](std::string_view) {
                       ++pieces;
                       most = std::max(most, ++since_look);
                       if (pieces > 500) throw std::runtime_error("nobody looks");
                       std::this_thread::sleep_for(std::chrono::milliseconds(10));
                     },
                 .stops =
                     [&] {
                       since_look = 0;
                       return pieces > 50 ? 2 : 0;
                     }});
  EXPECT_EQ(status, 128 + SIGTERM);
  EXPECT_LE(most, 40);
}

TEST(Supervise, DoesNotWaitForAStrayThatHoldsTheStreamOpen) {
  const Clock::time_point start = Clock::now();
  const End end = run_script("sleep 20 & echo $! >&2; exit 3");
  EXPECT_EQ(end.status, 3);
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(15));
  ::kill(std::stoi(end.errors), SIGKILL);
}

TEST(Supervise, SaysWhenTheProgramIsNotThere) {
  std::string errors;
  EXPECT_EQ(supervise({"/nonexistent/launcher"},
                      {.errors = [&](std::string_view text) { errors += text; },
                       .stops = [] { return 0; }}),
            127);
  EXPECT_THAT(errors, testing::HasSubstr("No such file"));
}

TEST(LaunchStatus, KeepsWhatTheProgramMeansAndIsOneOtherwise) {
  EXPECT_EQ(launch_status(0, 0), 0);
  EXPECT_EQ(launch_status(2, 0), 2);
  EXPECT_EQ(launch_status(130, 1), 130);
  EXPECT_EQ(launch_status(1, 0), 1);
  EXPECT_EQ(launch_status(137, 0), 1);
  EXPECT_EQ(launch_status(255, 1), 1);
  EXPECT_EQ(launch_status(128 + SIGUSR1, 1), 130);
  EXPECT_EQ(launch_status(128 + SIGUSR1, 0), 1);
  EXPECT_EQ(launch_status(1, 2), 130);
}

}  // namespace
}  // namespace cohort::launch
