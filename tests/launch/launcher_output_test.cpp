#include "launch/launcher_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cohort::launch {
namespace {

using testing::HasSubstr;

const std::string kDashes = std::string(74, '-') + "\n";

struct Reading {
  std::string passed_on;
  std::string kept_back;
};

Reading read_in_pieces(const std::string& text, std::size_t piece) {
  Reading reading;
  LauncherOutput output([&](std::string_view part) { reading.passed_on += part; });
  for (std::size_t i = 0; i < text.size(); i += piece) output.read(text.substr(i, piece));
  output.finish();
  reading.kept_back = output.kept_back();
  return reading;
}

TEST(LauncherOutput, TellsTheLaunchersPagesFromTheJobsLines) {
  const std::string job = "rank 0: epoch 1\n--- not a page\n\n";
  const std::string page = kDashes + "There are not enough slots available\n" + kDashes;
  const std::string more = "mpirun speaks\nlast line without end";
  for (const std::size_t piece : {1, 2, 7, 80, 10000}) {
    const Reading reading = read_in_pieces(job + page + more, piece);
    EXPECT_EQ(reading.passed_on, job + more);
    EXPECT_EQ(reading.kept_back, page);
  }
}

TEST(LauncherOutput, PassesOnAnUnfinishedLineAtOnce) {
  std::string passed_on;
  LauncherOutput output([&](std::string_view part) { passed_on += part; });
  output.read("step 1");
  EXPECT_EQ(passed_on, "step 1");
  output.read("0\r");
  EXPECT_EQ(passed_on, "step 10\r");
}

TEST(LauncherOutput, GivesUpOnAPageThatDoesNotEnd) {
  std::string text = kDashes;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i) + "\n";
  const Reading reading = read_in_pieces(text, 100);
  EXPECT_EQ(reading.passed_on, text);
  EXPECT_EQ(reading.kept_back, "");
}

TEST(WithoutNoise, KeepsTheUnknownPagesAlone) {
  const std::string failed =
      kDashes + "Primary job  terminated normally, but 1 process returned\n" +
      "a non-zero exit code. Per user-direction, the job has been aborted.\n" + kDashes;
  const std::string unknown = kDashes + "The sky is falling.\n" + kDashes;
  EXPECT_EQ(without_noise(failed + unknown + "mpirun: Forwarding signal 10 to job\n" + failed),
            unknown);
  EXPECT_EQ(without_noise(""), "");
}

TEST(ExplainLaunchFailure, SaysInOneSentenceWhatToDo) {
  LaunchRequest request;
  request.processes = 4;
  request.hosts_file = "hosts";
  const auto explain = [&](const std::string& text) {
    return explain_launch_failure(text, request);
  };
  EXPECT_THAT(explain("There are not enough slots available in the system to satisfy the 4\n"),
              HasSubstr("-n 4 is more than the slots: give --oversubscribe"));
  EXPECT_THAT(explain("ssh: Could not resolve hostname mars: Name or service not known\r\n"),
              HasSubstr("unknown host mars (in hosts)"));
  const std::string unreachable =
      explain("ssh: connect to host 10.1.1.1 port 22: Connection timed out\r\n");
  EXPECT_EQ(unreachable,
            "host 10.1.1.1 (in hosts) cannot be reached: Connection timed out; check that `ssh "
            "10.1.1.1 true` works");
  EXPECT_THAT(explain("Connection timed out during banner exchange\r\n"
                      "Connection to 10.1.1.2 port 22 timed out\r\n"),
              HasSubstr("host 10.1.1.2 (in hosts) does not answer"));
  EXPECT_EQ(explain("mpirun was unable to launch the specified application as it could not "
                    "access\nor execute an executable:\n\nExecutable: /opt/cohort\nNode: b\n\n"),
            "there is no program /opt/cohort on host b: install it there at the same path, or "
            "share the folder");
  EXPECT_EQ(explain("mpirun noticed that process rank 1 with PID 77 on node vm exited on signal 9 "
                    "(Killed).\n"),
            "rank 1 on vm was ended by signal 9 (Killed)");
  EXPECT_EQ(explain("mpirun detected that one or more processes exited with non-zero status"), "");
}

}  // namespace
}  // namespace cohort::launch
