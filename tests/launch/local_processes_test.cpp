// With scripts in the place of the program.
#include "launch/local_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/patience.h"
#include "launch/local_processes_job.h"
#include "launch/local_processes_servers.h"
#include "private_test_folder.h"

namespace cohort::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LocalLaunch : public PrivateTestFolder {
 protected:
  LocalLaunch() {
    control_.errors = [this](std::string_view text) { said_ += text; };
    control_.stops = [this] { return stops_(); };
    control_.environment = {"PATH=/usr/bin:/bin", "OUT="};
  }

  std::filesystem::path script(const std::string& text) {
    const std::filesystem::path path = folder() + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    ::chmod(path.c_str(), 0700);
    return path;
  }

  int run_job(int processes, const std::string& text) {
    return run_local_job(local_job({processes, script(text), {"train"}}), control_);
  }

  int run_servers(int servers, int workers, const std::string& text) {
    return run_local_servers({servers, workers, script(text), {"train", "x"}, ""}, control_);
  }

  std::string said_;
  std::function<int()> stops_ = [] { return 0; };
  LocalControl control_;
};

TEST_F(LocalLaunch, TellsEachProcessItsPlace) {
  EXPECT_EQ(
      run_job(3, "echo $RANK of $WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $* >&2"), 0);
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(said_, HasSubstr(std::string(rank) + " of 3 " + rank +
                                 "/3 127.0.0.1 train --engine tcp\n"));
  }
}

TEST_F(LocalLaunch, LeavesAnEngineThatIsNamedAlone) {
  for (const auto& flags : {std::vector<std::string>{"train", "--engine", "mpi"},
                            std::vector<std::string>{"train", "--engine=mpi"}}) {
    EXPECT_EQ(value_in(flags, "--engine"), "mpi");
    EXPECT_EQ(local_job({1, "/p", flags}).front().command.back(), flags.back());
  }
  EXPECT_EQ(value_in({"train"}, "--engine"), "");
  EXPECT_EQ(local_job({1, "/p", {"list"}}).front().command.back(), "list");
  EXPECT_THROW(local_job({0, "/p", {"train"}}), ConfigError);
}

TEST_F(LocalLaunch, PassesWholeLinesOn) {
  EXPECT_EQ(
      run_job(2, "for i in 1 2 3 4 5; do printf a >&2; printf 'b\\n' >&2; done; printf end >&2"),
      0);
  std::string rest = said_;
  int lines = 0;
  for (std::size_t at; (at = rest.find("ab\n")) != std::string::npos; ++lines) rest.erase(at, 3);
  EXPECT_EQ(lines, 10) << said_;
  EXPECT_EQ(rest, "endend");
}

TEST_F(LocalLaunch, NamesTheProcessThatFailsFirst) {
  EXPECT_EQ(run_job(3, "[ $RANK = 1 ] && kill -9 $$; sleep 0.5; exit 1"), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("process 1 failed first: it was ended by signal 9 (Killed)"),
                           Not(HasSubstr("process 2"))));
  EXPECT_EQ(run_job(2, "exit 2"), 2);
  EXPECT_EQ(run_job(2, "[ $RANK = 0 ] || exit 3"), 1);
  EXPECT_THAT(said_, HasSubstr("process 1 failed first: it ended with status 3"));
}

TEST_F(LocalLaunch, PassesAStopRequestOnPolitely) {
  const auto start = Clock::now();
  stops_ = [start] { return Clock::now() > start + std::chrono::milliseconds(100) ? 1 : 0; };
  EXPECT_EQ(run_job(2, "trap 'echo asked >&2; exit 130' USR1; while :; do sleep 0.1; done"), 130);
  EXPECT_EQ(said_, "asked\nasked\n");
}

TEST_F(LocalLaunch, EndsProcessesAtTheSecondStopRequest) {
  const auto start = Clock::now();
  stops_ = [start] { return Clock::now() > start + std::chrono::milliseconds(100) ? 2 : 0; };
  EXPECT_EQ(run_job(2, "exec sleep 60"), 130);
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(5));
}

constexpr const char* kServerUntil = "if [ \"$1\" = serve-parameters ]; then\n";

TEST_F(LocalLaunch, TellsServersAndWorkersTheirPlaces) {
  EXPECT_EQ(run_servers(2, 2,
                        std::string(kServerUntil) +
                            "echo \"$@\" $(ls $COHORT_TLS_DIR) >&2; exit 0; fi\n"
                            "echo $COHORT_RANK $COHORT_WORKERS $COHORT_SERVERS $(ls "
                            "$COHORT_TLS_DIR) $* >&2"),
            0);
  EXPECT_THAT(said_, testing::ContainsRegex(
                         "server 1: serve-parameters --listen 127.0.0.1:[0-9]+ --index 1 --workers "
                         "2 --state-dir /[^ ]*/server-1 authority.pem certificate.pem key.pem\n"));
  EXPECT_THAT(
      said_, testing::ContainsRegex("worker 1: 1 2 127.0.0.1:[0-9]+,127.0.0.1:[0-9]+ authority.pem "
                                    "certificate.pem key.pem train x\n"));
}

TEST_F(LocalLaunch, RemovesTheJobsFolder) {
  EXPECT_EQ(run_servers(1, 1, "echo $COHORT_TLS_DIR >&2"), 0);
  const std::size_t begin = said_.find('/');
  const std::filesystem::path tls = said_.substr(begin, said_.find('\n') - begin);
  EXPECT_FALSE(std::filesystem::exists(tls.parent_path().parent_path())) << tls;
}

TEST_F(LocalLaunch, StartsAKilledServerAgain) {
  const std::string count = folder() + "/count";
  EXPECT_EQ(run_servers(1, 1,
                        std::string(kServerUntil) + "echo x >> " + count + "\n[ $(wc -l < " +
                            count + ") -lt 3 ] && kill -9 $$\nexit 0; fi\nsleep 1"),
            0);
  EXPECT_THAT(said_, AllOf(HasSubstr("server 0 was ended by signal 9 (Killed); it is started again "
                                     "(1 of 3)"),
                           HasSubstr("(2 of 3)"), Not(HasSubstr("(3 of 3)"))));
}

TEST_F(LocalLaunch, GivesAServerUpThatIsKilledTooOften) {
  const auto start = Clock::now();
  EXPECT_EQ(run_servers(1, 1, std::string(kServerUntil) + "kill -9 $$; fi\nexec sleep 60"), 1);
  EXPECT_THAT(said_, HasSubstr("server 0 was ended by signal 9 (Killed), too often"));
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(10));
}

TEST_F(LocalLaunch, AServerThatFailsByItselfEndsTheJob) {
  EXPECT_EQ(run_servers(1, 1,
                        std::string(kServerUntil) + "sleep 0.3; exit 1; fi\n" +
                            "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9; do sleep 10; done"),
            1);
  EXPECT_THAT(said_, HasSubstr("server 0 ended with status 1\ncohort: the job is ended"));
}

TEST_F(LocalLaunch, AWorkerThatDiesDoesNotEndTheOthers) {
  EXPECT_EQ(run_servers(1, 2,
                        std::string(kServerUntil) + "sleep 1; exit 0; fi\n"
                                                    "[ $COHORT_RANK = 0 ] && kill -9 $$\n"
                                                    "sleep 0.3; echo done >&2"),
            1);
  EXPECT_THAT(said_, AllOf(HasSubstr("worker 0 was ended by signal 9 (Killed); the others go on"),
                           HasSubstr("worker 1: done")));
}

TEST_F(LocalLaunch, ServersDoNotWaitForWorkersThatAllRefused) {
  const auto start = Clock::now();
  EXPECT_EQ(run_servers(1, 2, std::string(kServerUntil) + "exec sleep 60; fi\nexit 2"), 2);
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(5));
}

TEST(EnvironmentForChildren, LeavesOutWhatOtherLaunchersSaid) {
  const char* const all[] = {
      "PATH=/bin",          "OMPI_COMM_WORLD_RANK=3", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=x",
      "COHORT_DATA_DIR=/d", "COHORT_TOKEN=secret",    nullptr};
  EXPECT_EQ(environment_for_children(all),
            (std::vector<std::string>{"PATH=/bin", "COHORT_DATA_DIR=/d", "COHORT_TOKEN=secret"}));
}

}  // namespace
}  // namespace cohort::launch
