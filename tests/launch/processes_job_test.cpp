// With real processes, each given the variables that torchrun would set.
#include "launch/processes_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "core/error.h"
#include "private_test_folder.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Variables = std::map<std::string, std::string>;

Variables torchrun(int rank, int size, int port = 29500) {
  return {{"RANK", std::to_string(rank)},        {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},  {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},          {"MASTER_PORT", std::to_string(port)},
          {"TORCHELASTIC_RUN_ID", "../../none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
}

std::unique_ptr<Job> make_job(const Variables& variables, const JobOptions& options,
                              const std::string& folder) {
  const Variable variable = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return make_processes_job(options, variable, folder);
}

// A process of a job. Sends back what `body` returns, or the message of the error that ended it.
class Process {
 public:
  using Body = std::function<std::string(Job&)>;

  Process(const Variables& variables, const JobOptions& options, const std::string& folder,
          const Body& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      std::string said;
      try {
        const std::unique_ptr<Job> job = make_job(variables, options, folder);
        said = body(*job);
      } catch (const std::exception& error) {
        said = error.what();
      }
      static_cast<void>(!write(ends[1], said.data(), said.size()));
      _exit(0);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(pipe_);
  }

  void signal(int number) const { kill(child_, number); }
  pid_t pid() const { return child_; }

  // Everything it says until its end.
  std::string said(std::chrono::milliseconds within = 30s) const {
    const Deadline deadline = deadline_in(within);
    std::string text;
    char buffer[4096];
    while (Clock::now() < deadline) {
      pollfd watched = {.fd = pipe_, .events = POLLIN, .revents = 0};
      if (poll(&watched, 1, 100) <= 0) continue;
      const ssize_t count = read(pipe_, buffer, sizeof buffer);
      if (count <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text + " and has not ended";
  }

 private:
  pid_t child_ = -1;
  int pipe_ = -1;
};

// Sums of whole numbers, which are exact in any order.
std::string sum_on_all_ranks(Job& job) {
  std::vector<Membership> members = job.join();
  std::vector<std::string> found(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      const Membership& member = members[i];
      const Deadline deadline = deadline_in(20s);
      for (const std::size_t numel : {1, 1000, 50000, 700000}) {
        std::vector<float> values(numel);
        for (std::size_t k = 0; k < numel; ++k) {
          values[k] = static_cast<float>((member.rank + 1) * (k % 7 + 1));
        }
        member.gradients->all_reduce(values, deadline);
        const std::size_t ranks = member.size * (member.size + 1) / 2;
        for (std::size_t k = 0; k < numel; ++k) {
          if (values[k] != static_cast<float>(ranks * (k % 7 + 1))) found[i] = "a wrong sum";
        }
      }
      const auto own = static_cast<std::byte>(member.rank);
      for (const Bytes& bytes : member.control->all_gather({&own, 1}, deadline)) {
        found[i] += std::to_string(static_cast<int>(bytes.at(0)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    text += std::to_string(members[i].rank) + " of " + std::to_string(members[i].size) + " has " +
            found[i] + ";";
  }
  return text;
}

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
    return std::to_string(job.process()) + "/" + std::to_string(job.processes()) + " " +
           std::to_string(job.first_rank()) + "+" + std::to_string(job.local_size()) + "/" +
           std::to_string(job.size()) + " host " + std::to_string(members[1].host_rank) + "/" +
           std::to_string(job.host_size());
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
  const auto sum_for_ever = [](Job& job) -> std::string {
    const std::vector<Membership> members = job.join();
    std::vector<float> values(1000);
    for (;;) members[0].gradients->all_reduce(values, deadline_in(20s));
  };
  const Process first(torchrun(0, 2), {}, folder(), sum_for_ever);
  const Process second(torchrun(1, 2), {}, folder(), sum_for_ever);
  std::this_thread::sleep_for(500ms);
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
  EXPECT_EQ(first.said(4s), "skipped");
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
