// With real processes, each given the variables that torchrun would set.
#include "launch/processes_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "job_process.h"
#include "private_test_folder.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::unique_ptr<Job> make_job(const Variables& variables, const JobOptions& options,
                              const std::string& folder) {
  return make_processes_job(options, lookup(variables), folder);
}

class Process : public JobProcess {
 public:
  Process(const Variables& variables, const JobOptions& options, const std::string& folder,
          const Body& body)
      : JobProcess([=] { return make_job(variables, options, folder); }, body) {}
};

class ProcessesJob : public PrivateTestFolder {};

TEST_F(ProcessesJob, SumsOverProcessesAndThreads) {
  for (const int processes : {1, 2, 3}) {
    for (const int threads : {1, 2}) {
      JobOptions options;
      options.workers = processes * threads;
      std::vector<std::unique_ptr<Process>> all;
      // The last first: whoever comes first waits.
      for (int rank = processes - 1; rank >= 0; --rank) {
        all.push_back(std::make_unique<Process>(torchrun(rank, processes), options, folder(),
                                                sum_on_all_ranks));
      }
      std::string everyone;
      for (int rank = 0; rank < options.workers; ++rank) everyone += std::to_string(rank);
      for (int rank = 0; rank < processes; ++rank) {
        std::string expected;
        for (int i = 0; i < threads; ++i) {
          expected += std::to_string(rank * threads + i) + " of " +
                      std::to_string(options.workers) + " has " + everyone + ";";
        }
        EXPECT_EQ(all[processes - 1 - rank]->said(), expected) << processes << " x " << threads;
      }
      EXPECT_EQ(files(), 0);
    }
  }
}

TEST_F(ProcessesJob, TellsWhereItsRanksAre) {
  const auto describe = [](Job& job) {
    std::vector<Membership> members = job.join();
    const JobShape shape = job.shape();
    return std::to_string(shape.process) + "/" + std::to_string(shape.processes) + " " +
           std::to_string(shape.first_rank) + "+" + std::to_string(shape.local_size) + "/" +
           std::to_string(shape.size) + " host " + std::to_string(members[1].host_rank) + "/" +
           std::to_string(shape.host_size);
  };
  JobOptions options;
  options.workers = 4;
  const Process first(torchrun(0, 2), options, folder(), describe);
  const Process second(torchrun(1, 2), options, folder(), describe);
  EXPECT_EQ(first.said(), "0/2 0+2/4 host 1/4");
  EXPECT_EQ(second.said(), "1/2 2+2/4 host 3/4");
}

TEST_F(ProcessesJob, NamesThoseWhoDoNotCome) {
  JobOptions options;
  options.start_timeout = 500ms;
  const Process first(torchrun(0, 4), options, folder(), sum_on_all_ranks);
  const Process second(torchrun(1, 4), options, folder(), sum_on_all_ranks);
  const auto named = AllOf(HasSubstr("rank 2"), HasSubstr("rank 3"), HasSubstr("did not start"));
  EXPECT_THAT(first.said(5s), named);
  EXPECT_THAT(second.said(5s), named);
  EXPECT_EQ(files(), 0);
}

TEST_F(ProcessesJob, NamesProcessZeroWhenThatDoesNotCome) {
  JobOptions options;
  options.start_timeout = 300ms;
  const Process second(torchrun(1, 2), options, folder(), sum_on_all_ranks);
  EXPECT_THAT(second.said(5s), AllOf(HasSubstr("rank 1 waited 0.3 s"), HasSubstr("rank 0")));
}

TEST_F(ProcessesJob, IsNotMisledByOneThatWasKilledWhileItWaited) {
  {
    const Process gone(torchrun(0, 2), {}, folder(), sum_on_all_ranks);
    wait_for_files(1);
    gone.signal(SIGKILL);
  }
  EXPECT_EQ(files(), 1);
  const std::string memory = memory_named_in_notice();
  EXPECT_TRUE(std::filesystem::exists(memory));
  // Process 1 is there before process 0 can take the notice away.
  const Process second(torchrun(1, 2), {}, folder(), sum_on_all_ranks);
  std::this_thread::sleep_for(200ms);
  const Process first(torchrun(0, 2), {}, folder(), sum_on_all_ranks);
  EXPECT_EQ(first.said(), "0 of 2 has 01;");
  EXPECT_EQ(second.said(), "1 of 2 has 01;");
  EXPECT_EQ(files(), 0);
  EXPECT_FALSE(std::filesystem::exists(memory));
}

TEST_F(ProcessesJob, RefusesToStartBesideAnotherWithTheSamePort) {
  const Process first(torchrun(0, 2), {}, folder(), sum_on_all_ranks);
  wait_for_files(1);
  const Process other(torchrun(0, 2), {}, folder(), sum_on_all_ranks);
  EXPECT_THAT(other.said(5s),
              AllOf(StartsWith("process " + std::to_string(first.pid()) + " is starting"),
                    HasSubstr("MASTER_PORT")));
  // Which is not harmed by it.
  const Process second(torchrun(1, 2), {}, folder(), sum_on_all_ranks);
  EXPECT_EQ(first.said(), "0 of 2 has 01;");
  EXPECT_EQ(second.said(), "1 of 2 has 01;");
}

TEST_F(ProcessesJob, StartsBesideOthersWithOtherPorts) {
  std::vector<std::unique_ptr<Process>> all;
  for (const int rank : {0, 1}) {
    for (const int port : {29500, 29501, 29502}) {
      all.push_back(std::make_unique<Process>(torchrun(rank, 2, port), JobOptions{}, folder(),
                                              sum_on_all_ranks));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]->said(), std::to_string(i / 3) + " of 2 has 01;");
  }
}

TEST_F(ProcessesJob, RefusesASecondProcessOfTheSameRank) {
  JobOptions options;
  options.start_timeout = 2s;
  const Process first(torchrun(0, 3), options, folder(), sum_on_all_ranks);
  wait_for_files(1);
  const Process one(torchrun(1, 3), options, folder(), sum_on_all_ranks);
  const Process two(torchrun(1, 3), options, folder(), sum_on_all_ranks);
  const std::string both = one.said(8s) + two.said(8s);
  EXPECT_THAT(both, AllOf(HasSubstr("is there already"), HasSubstr("rank 2 did not start")));
}

TEST_F(ProcessesJob, RefusesProcessesThatCountDifferently) {
  JobOptions four;
  four.workers = 4;
  four.start_timeout = 1s;
  const Process first(torchrun(0, 2), four, folder(), sum_on_all_ranks);
  JobOptions two = four;
  two.workers = 2;
  const Process second(torchrun(1, 2), two, folder(), sum_on_all_ranks);
  EXPECT_THAT(second.said(5s), AllOf(HasSubstr("2 workers"), HasSubstr("4 workers")));
  EXPECT_THAT(first.said(5s), HasSubstr("ranks 2 and 3 did not start"));
}

TEST_F(ProcessesJob, NamesOneThatIsKilled) {
  const Process first(torchrun(0, 2), {}, folder(), sum_for_ever);
  const Process second(torchrun(1, 2), {}, folder(), sum_for_ever);
  for (const Process* one : {&first, &second}) one->await_ready();
  second.signal(SIGKILL);
  EXPECT_THAT(first.said(5s),
              StartsWith("rank 1 (process " + std::to_string(second.pid()) + ") was killed"));
}

TEST_F(ProcessesJob, EndsAtOnceWhenItIsToSkipTheFarewell) {
  const Process other(torchrun(1, 2), {}, folder(), [](Job&) {
    std::this_thread::sleep_for(10s);
    return "";
  });
  const Process first(torchrun(0, 2), {}, folder(), [](Job& job) {
    job.skip_farewell();
    return "skipped";
  });
  EXPECT_EQ(first.said(400ms), "skipped");
}

TEST_F(ProcessesJob, SaysWhatToDoWithoutALauncherOrWithManyHosts) {
  const auto fault = [&](const Variables& variables, int workers) -> std::string {
    JobOptions options;
    options.workers = workers;
    try {
      make_job(variables, options, folder());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault({}, 0), "");
  EXPECT_EQ(fault({}, 1), "");
  EXPECT_THAT(fault({}, 3), AllOf(HasSubstr("torchrun --no_python --nproc_per_node 3"),
                                  HasSubstr("mpirun -n 3"), HasSubstr("--engine threads")));
  EXPECT_THAT(fault(torchrun(0, 2), 3), HasSubstr("multiple of 2"));
  Variables spread = torchrun(1, 4);
  spread["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_THAT(fault(spread, 0), AllOf(HasSubstr("one host"), HasSubstr("mpirun -n 4"),
                                      HasSubstr("cohort launch -n 4")));
}

}  // namespace
}  // namespace cohort
