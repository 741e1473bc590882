// With real processes on loopback. COHORT_HOST makes hosts of them, so that what goes between hosts
// goes over tcp here too.
#include "launch/tcp_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/patience.h"
#include "job_process.h"
#include "launch/local_processes.h"
#include "private_test_folder.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

class TcpJob : public PrivateTestFolder {
 protected:
  TcpJob() : port_(free_ports(1).front()) {}

  // `hosts`: by process, a letter; a space: this host as it is.
  Variables place(int rank, int size, const std::string& hosts = "") const {
    Variables variables = torchrun(rank, size, port_);
    const char host = rank < static_cast<int>(hosts.size()) ? hosts[rank] : ' ';
    if (host != ' ') variables["COHORT_HOST"] = std::string("host-") + host;
    return variables;
  }

  std::unique_ptr<JobProcess> process(const Variables& variables, const JobOptions& options,
                                      const JobProcess::Body& body) const {
    return std::make_unique<JobProcess>(
        [variables, options, where = folder()] {
          return make_tcp_job(options, lookup(variables), where);
        },
        body);
  }

  // What each process says; the last started first.
  std::vector<std::string> run(int size, const std::string& hosts, const JobOptions& options,
                               const JobProcess::Body& body) const {
    std::vector<std::unique_ptr<JobProcess>> all;
    for (int rank = size - 1; rank >= 0; --rank) {
      all.push_back(process(place(rank, size, hosts), options, body));
    }
    std::vector<std::string> said;
    for (int rank = 0; rank < size; ++rank) said.push_back(all[size - 1 - rank]->said());
    return said;
  }

  std::string fault(const Variables& variables, const JobOptions& options) const {
    try {
      make_tcp_job(options, lookup(variables), folder());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  std::uint16_t port_;
};

JobOptions with_workers(int workers, std::chrono::milliseconds start = 20s) {
  JobOptions options;
  options.workers = workers;
  options.start_timeout = start;
  return options;
}

TEST_F(TcpJob, SumsOverHostsProcessesAndThreads) {
  for (const std::string hosts : {" ", "  ", "ab", "abc", "aab", "abab"}) {
    for (const int threads : {1, 2}) {
      const int processes = static_cast<int>(hosts.size());
      const int workers = processes * threads;
      std::string everyone;
      for (int rank = 0; rank < workers; ++rank) everyone += std::to_string(rank);
      const auto said = run(processes, hosts, with_workers(workers), sum_on_all_ranks);
      for (int rank = 0; rank < processes; ++rank) {
        std::string expected;
        for (int i = 0; i < threads; ++i) {
          expected += std::to_string(rank * threads + i) + " of " + std::to_string(workers) +
                      " has " + everyone + ";";
        }
        EXPECT_EQ(said[rank], expected) << "'" << hosts << "' x " << threads;
      }
    }
  }
}

TEST_F(TcpJob, MeetsAtAddressesThatAreKnownBeforehand) {
  JobOptions options = with_workers(0);
  for (const std::uint16_t port : free_ports(3)) {
    options.addresses.push_back({"127.0.0.1", port, ""});
  }
  std::vector<std::unique_ptr<JobProcess>> all;
  for (options.process = 0; options.process < 3; ++options.process) {
    const Variables variables = {{"COHORT_HOST", "h" + std::to_string(options.process)}};
    all.push_back(process(variables, options, sum_on_all_ranks));
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(all[rank]->said(), std::to_string(rank) + " of 3 has 012;");
  }
}

TEST_F(TcpJob, MeetsOnLoopbackWhereTheLauncherNamesThisHostByAnUnknownName) {
  std::vector<std::unique_ptr<JobProcess>> all;
  for (const int rank : {0, 1}) {
    Variables variables = place(rank, 2);
    variables["MASTER_ADDR"] = "no-such-host.invalid";
    all.push_back(process(variables, with_workers(0), sum_on_all_ranks));
  }
  for (const int rank : {0, 1})
    EXPECT_EQ(all[rank]->said(), std::to_string(rank) + " of 2 has 01;");
}

TEST_F(TcpJob, TellsWhereItsRanksAre) {
  const auto describe = [](Job& job) {
    std::vector<collectives::Membership> members = job.join();
    const JobShape shape = job.shape();
    return std::to_string(shape.process) + "/" + std::to_string(shape.processes) + " " +
           std::to_string(shape.first_rank) + "+" + std::to_string(shape.local_size) + "/" +
           std::to_string(shape.size) + " host " + std::to_string(members[1].host_rank) + "/" +
           std::to_string(shape.host_size);
  };
  EXPECT_EQ(
      run(3, "aba", with_workers(6), describe),
      (std::vector<std::string>{"0/3 0+2/6 host 1/4", "1/3 2+2/6 host 1/2", "2/3 4+2/6 host 3/4"}));
}

TEST_F(TcpJob, NamesThoseWhoDoNotCome) {
  const auto first = process(place(0, 4), with_workers(0, 1s), sum_on_all_ranks);
  const auto second = process(place(1, 4), with_workers(0, 1s), sum_on_all_ranks);
  EXPECT_THAT(first->said(5s), AllOf(HasSubstr("waited"), HasSubstr("process 2, process 3"),
                                     HasSubstr("torchrun counts 4 processes")));
  second->said(5s);
}

TEST_F(TcpJob, NamesProcessZeroWhenThatDoesNotCome) {
  const auto second = process(place(1, 2), with_workers(0, 500ms), sum_on_all_ranks);
  EXPECT_THAT(second->said(5s), AllOf(HasSubstr("process 1 waited"), HasSubstr("process 0"),
                                      HasSubstr("127.0.0.1:" + std::to_string(port_))));
}

TEST_F(TcpJob, SaysForWhomItWaits) {
  JobOptions options = with_workers(0, 3300ms);
  const auto first = std::make_unique<JobProcess>(
      [options, variables = place(0, 3), where = folder()]() mutable {
        std::string noted;
        options.note = [&](const std::string& line) { noted += line; };
        try {
          return make_tcp_job(options, lookup(variables), where);
        } catch (const PeerError&) {
          throw PeerError(noted);
        }
      },
      sum_on_all_ranks);
  EXPECT_EQ(first->said(10s),
            "process 0 waits for process 1, process 2 of 3 to come to 127.0.0.1:" +
                std::to_string(port_));
}

TEST_F(TcpJob, RefusesProcessesThatCountDifferently) {
  const auto first = process(place(0, 2), with_workers(4, 2s), sum_on_all_ranks);
  const auto second = process(place(1, 2), with_workers(2, 2s), sum_on_all_ranks);
  EXPECT_THAT(second->said(5s),
              AllOf(HasSubstr("2 workers"), HasSubstr("4 workers"), HasSubstr("WORLD_SIZE")));
  EXPECT_THAT(first->said(5s), HasSubstr("process 1 counts 2 processes and 2 workers"));
}

TEST_F(TcpJob, RefusesASecondProcessOfTheSameRank) {
  const auto first = process(place(0, 3), with_workers(0, 2s), sum_on_all_ranks);
  const auto one = process(place(1, 3), with_workers(0, 2s), sum_on_all_ranks);
  const auto two = process(place(1, 3), with_workers(0, 2s), sum_on_all_ranks);
  const std::string both = one->said(8s) + two->said(8s);
  EXPECT_THAT(both, HasSubstr("there is a process 1 already"));
}

TEST_F(TcpJob, RefusesTheMeetingPointOfAnother) {
  const auto first = process(place(0, 2), with_workers(0, 3s), sum_on_all_ranks);
  std::this_thread::sleep_for(300ms);
  EXPECT_THAT(process(place(0, 2), with_workers(0, 3s), sum_on_all_ranks)->said(5s),
              HasSubstr(std::to_string(port_)));
  const auto second = process(place(1, 2), with_workers(0, 3s), sum_on_all_ranks);
  EXPECT_EQ(first->said(), "0 of 2 has 01;");
  EXPECT_EQ(second->said(), "1 of 2 has 01;");
}

TEST_F(TcpJob, NamesOneThatIsKilled) {
  for (const std::string hosts : {"  ", "ab"}) {
    const auto first = process(place(0, 2, hosts), with_workers(0), sum_for_ever);
    const auto second = process(place(1, 2, hosts), with_workers(0), sum_for_ever);
    for (const auto* one : {first.get(), second.get()}) one->await_ready();
    second->signal(SIGKILL);
    const auto start = Clock::now();
    EXPECT_THAT(first->said(5s),
                AllOf(StartsWith("rank 1 "), HasSubstr("at step 17, computing gradients")))
        << hosts;
    EXPECT_LT(seconds_between(start, Clock::now()), patiently(1.5)) << hosts;
  }
}

TEST_F(TcpJob, NamesOneThatIsStopped) {
  JobOptions options = with_workers(0);
  options.silence = 1s;
  const auto first = process(place(0, 2, "ab"), options, sum_for_ever);
  const auto second = process(place(1, 2, "ab"), options, sum_for_ever);
  for (const auto* one : {first.get(), second.get()}) one->await_ready();
  second->signal(SIGSTOP);
  const auto start = Clock::now();
  EXPECT_THAT(first->said(6s), AllOf(StartsWith("rank 1 on host-b is lost: "),
                                     HasSubstr("at step 17, computing gradients")));
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(3));
}

TEST_F(TcpJob, TellsAllHostsWhyOneLeft) {
  const auto body = [](Job& job) -> std::string {
    const std::vector<collectives::Membership> members = job.join();
    if (job.shape().process == 3) {
      std::this_thread::sleep_for(300ms);
      members[0].leave("its disk is full");
      return "left";
    }
    std::vector<float> values(10);
    for (;;) members[0].control->all_reduce(values, deadline_in(20s));
  };
  const auto said = run(4, "abcc", with_workers(0), body);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(said[rank], HasSubstr("rank 3 left: its disk is full")) << rank;
  }
}

TEST_F(TcpJob, NamesOneThatIsAliveButDoesNotCome) {
  const auto body = [](Job& job) -> std::string {
    const std::vector<collectives::Membership> members = job.join();
    members[0].activity->set(7, Phase::kLoading);
    if (job.shape().process == 1) {
      std::this_thread::sleep_for(1500ms);
      return "slept";
    }
    std::vector<float> values(10);
    members[0].gradients->all_reduce(values, deadline_in(1s));
    return "";
  };
  EXPECT_THAT(run(2, "ab", with_workers(0), body)[0],
              ContainsRegex("rank 1 on host-b has not come to all_reduce in 1.. s; last heard at "
                            "step 7, loading data"));
}

TEST_F(TcpJob, EndsAtOnceWhenItIsToSkipTheFarewell) {
  const auto other = process(place(1, 2, "ab"), with_workers(0), [](Job&) {
    std::this_thread::sleep_for(10s);
    return "";
  });
  const auto first = process(place(0, 2, "ab"), with_workers(0), [](Job& job) {
    job.skip_farewell();
    return "skipped";
  });
  EXPECT_EQ(first->said(400ms), "skipped");
}

TEST_F(TcpJob, SaysWhatToDo) {
  EXPECT_EQ(fault({}, with_workers(1)), "");
  EXPECT_THAT(fault({}, with_workers(3)),
              AllOf(HasSubstr("cohort launch --engine tcp -n 3"), HasSubstr("--engine threads")));
  EXPECT_THAT(fault(place(0, 2), with_workers(3)), HasSubstr("multiple of 2"));
  Variables nowhere = place(0, 2);
  nowhere.erase("MASTER_PORT");
  EXPECT_THAT(fault(nowhere, {}), HasSubstr("--meet HOST:PORT"));
  Variables spread = place(1, 4);
  spread["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_THAT(fault(spread, {}), HasSubstr("loopback"));
  JobOptions known;
  known.addresses = {{"127.0.0.1", 1, ""}, {"127.0.0.1", 2, ""}};
  known.process = 2;
  EXPECT_THAT(fault({}, known), HasSubstr("from 0 to 1"));
}

}  // namespace
}  // namespace cohort::launch
