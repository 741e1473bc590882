// With real processes, which are killed, stopped and damaged.
#include "collectives/process_shared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "collectives/auto_tuner.h"
#include "collectives/inputs.h"
#include "collectives/shared_mapping.h"
#include "collectives/shared_memory.h"
#include "core/error.h"
#include "core/patience.h"
#include "core/random.h"
#include "transport/rank_threads.h"

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

ProcessGroup group_of(int size, std::chrono::milliseconds silence = 6s) {
  ProcessGroup group;
  for (Rank rank = 0; rank < size; ++rank) group.ranks.push_back({rank});
  group.channels = 2;
  group.silence = silence;
  return group;
}

// Processes that take part in one group. Each sends back what `body` returns, or the message of
// the PeerError that ended it.
class Processes {
 public:
  using Body = std::function<std::string(ProcessShared&, Rank)>;

  Processes(const ProcessGroup& group, const Body& body) {
    const int size = static_cast<int>(group.ranks.size());
    for (Rank rank = 0; rank < size; ++rank) {
      int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      const pid_t child = fork();
      if (child == 0) {
        take_part(group, rank, body, ends[1]);
        _exit(0);
      }
      close(ends[1]);
      children_.push_back(child);
      pipes_.push_back(ends[0]);
      if (rank == 0) name_ = read_line(0);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (Rank rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
      signal(rank, SIGKILL);
      waitpid(children_[rank], nullptr, 0);
      close(pipes_[rank]);
    }
  }

  void signal(Rank rank, int number) const { kill(children_[rank], number); }
  pid_t pid(Rank rank) const { return children_[rank]; }
  const std::string& name() const { return name_; }

  // What a process sends next, or "" when it has ended.
  std::string read_line(Rank rank) const {
    std::string line;
    char letter = 0;
    while (read(pipes_[rank], &letter, 1) == 1 && letter != '\n') line += letter;
    return line;
  }

 private:
  void take_part(const ProcessGroup& group, Rank rank, const Body& body, int out) {
    std::string result;
    try {
      const auto shared =
          rank == 0 ? ProcessShared::create(group, 0) : ProcessShared::open(name_, group, rank);
      if (rank == 0) say(out, shared->name());
      shared->wait_for_all(transport::far());
      result = body(*shared, rank);
    } catch (const std::exception& error) {
      result = error.what();
    }
    say(out, result);
  }

  static void say(int out, std::string line) {
    line += '\n';
    if (write(out, line.data(), line.size()) < 0) _exit(3);
  }

  std::string name_;
  std::vector<pid_t> children_;
  std::vector<int> pipes_;
};

std::string digest(const std::vector<float>& values) {
  std::uint64_t hash = 1469598103934665603U;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211U;
  }
  return std::to_string(hash);
}

TEST(ProcessShared, SumsToTheBitsThatThreadsGet) {
  constexpr std::size_t kLengths[] = {1, 100, 5000, 131072, 1000003};
  for (const int size : {2, 3, 4}) {
    std::string expected;
    const auto threads = make_shared_memory_group(size);
    transport::run_ranks(size, [&](Rank rank) {
      std::string own;
      for (const std::size_t numel : kLengths) {
        auto values = input_of(rank, numel);
        threads[rank]->all_reduce(values, transport::far());
        own += digest(values) + " ";
      }
      if (rank == 0) expected = own;
    });
    const Processes processes(group_of(size), [&](ProcessShared& shared, Rank rank) {
      const auto channel = shared.channel(0);
      std::string own;
      for (const std::size_t numel : kLengths) {
        auto values = input_of(rank, numel);
        channel->all_reduce(values, transport::far());
        own += digest(values) + " ";
      }
      return own;
    });
    for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(processes.read_line(rank), expected);
    EXPECT_NE(access(processes.name().c_str(), F_OK), 0) << "its name is left behind";
  }
}

TEST(ProcessShared, SumsLongVectorsToTheSameBitsEachTime) {
  // All ways of summing are tried in turn.
  const Processes processes(group_of(3), [&](ProcessShared& shared, Rank rank) -> std::string {
    const auto channel = shared.channel(0);
    std::string first;
    for (int round = 0; round < 8; ++round) {
      auto values = input_of(rank, 1500001);
      channel->all_reduce(values, transport::far());
      const std::string own = digest(values);
      if (first.empty()) first = own;
      if (own != first) return "round " + std::to_string(round) + " differs";
    }
    return first;
  });
  const std::string first = processes.read_line(0);
  EXPECT_THAT(first, MatchesRegex("[0-9]+"));
  for (const Rank rank : {1, 2}) EXPECT_EQ(processes.read_line(rank), first);
}

TEST(ProcessShared, SaysWhoWasKilledInTheMiddleOfALongSum) {
  const Processes processes(group_of(3), [&](ProcessShared& shared, Rank rank) -> std::string {
    const auto channel = shared.channel(0);
    shared.activity(rank, 0)->set(5, Phase::kExchanging);
    std::vector<float> values(3000000);
    for (int round = 0;; ++round) {
      std::thread end;
      if (rank == 1 && round == 9) {
        end = std::thread([] {
          std::this_thread::sleep_for(1ms);
          std::raise(SIGKILL);
        });
      }
      channel->all_reduce(values, transport::far());
      if (end.joinable()) end.join();
    }
  });
  for (const Rank rank : {0, 2}) {
    EXPECT_THAT(processes.read_line(rank), MatchesRegex("rank 1 \\(process [0-9]+\\) was killed at "
                                                        "step 5, exchanging with the others"));
  }
}

TEST(AutoTuner, KeepsToTheQuickerAndTriesTheOtherAgain) {
  AutoTuner ways;
  std::array<int, 2> taken = {};
  for (int i = 0; i < 200; ++i) {
    const int way = ways.choose(1 << 22, 2);
    ++taken[way];
    ways.took(1 << 22, way, way == 0 ? 0.01 : 0.02);
  }
  EXPECT_GT(taken[0], 180);
  EXPECT_GT(taken[1], 2);
  for (int i = 0; i < 400; ++i) {  // the machine has changed
    const int way = ways.choose(1 << 22, 2);
    ways.took(1 << 22, way, way == 0 ? 0.05 : 0.02);
    if (i > 300) taken[way] += 1000;
  }
  EXPECT_GT(taken[1], 90000);
}

TEST(ProcessShared, SaysWhoWasKilledAndWhatItWasDoing) {
  const Processes processes(group_of(3), [&](ProcessShared& shared, Rank rank) -> std::string {
    const auto channel = shared.channel(1);
    channel->barrier(transport::far());
    if (rank == 1) {
      shared.activity(1, 0)->set(17, Phase::kComputing);
      std::raise(SIGKILL);
    }
    const auto start = Clock::now();
    try {
      channel->barrier(transport::far());
    } catch (const PeerError& error) {
      const double waited = seconds_between(start, Clock::now());
      return (waited < 1.5 ? "" : "late: ") + std::string(error.what());
    }
    return "no error";
  });
  const std::string expected = "rank 1 (process " + std::to_string(processes.pid(1)) +
                               ") was killed at step 17, computing gradients";
  for (const Rank rank : {0, 2}) EXPECT_EQ(processes.read_line(rank), expected);
}

TEST(ProcessShared, GivesUpAProcessThatIsStoppedButNotOneThatGoesOnInTime) {
  const Processes processes(group_of(3, 1500ms), [&](ProcessShared& shared, Rank rank) {
    const auto channel = shared.channel(0);
    if (rank == 1) {
      shared.activity(1, 0)->set(4, Phase::kLoading);
      std::raise(SIGSTOP);  // until the test lets it go on
    }
    channel->barrier(transport::far());
    if (rank == 1) std::raise(SIGSTOP);
    std::string text = "no error";
    try {
      channel->barrier(transport::far());
    } catch (const PeerError& error) {
      text = error.what();
    }
    return text;
  });
  std::this_thread::sleep_for(600ms);
  processes.signal(1, SIGCONT);
  const auto start = Clock::now();
  for (const Rank rank : {0, 2}) {
    EXPECT_THAT(processes.read_line(rank),
                MatchesRegex("rank 1 \\(process [0-9]+\\) has not answered for 1\\.[0-9] s; it was "
                             "at step 4, loading data \\(stopped or swapped out\\?\\)"));
  }
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(4.0));
  processes.signal(1, SIGCONT);
  EXPECT_THAT(processes.read_line(1), HasSubstr("rank 1"));
}

TEST(ProcessShared, TellsWhyAProcessLeft) {
  const Processes processes(group_of(2), [&](ProcessShared& shared, Rank rank) -> std::string {
    const auto channel = shared.channel(0);
    channel->barrier(transport::far());
    if (rank == 1) {
      channel->leave("RunError: loss is not a number");
      return "left";
    }
    channel->barrier(transport::far());
    return "no error";
  });
  EXPECT_EQ(processes.read_line(0), "rank 1 left: RunError: loss is not a number");
}

TEST(ProcessShared, FinishesWhatIsCompleteWhenAProcessEnds) {
  for (int round = 0; round < 10; ++round) {
    const Processes processes(group_of(3), [&](ProcessShared& shared, Rank) -> std::string {
      const auto channel = shared.channel(0);
      std::vector<float> values(200000, 1.0F);
      channel->all_reduce(values, transport::far());
      return values.back() == 3.0F ? "ok" : "wrong";
    });
    for (const Rank rank : {0, 1, 2}) EXPECT_EQ(processes.read_line(rank), "ok");
  }
}

TEST(ProcessShared, KeepsChannelsApart) {
  const Processes processes(group_of(2), [&](ProcessShared& shared, Rank rank) -> std::string {
    const auto control = shared.channel(0);
    {
      const auto gradients = shared.channel(1);
      std::vector<float> large(300000, 1.0F);
      std::thread exchange([&] {
        for (int i = 0; i < 20; ++i) gradients->all_reduce(large, transport::far());
      });
      for (int i = 0; i < 500; ++i) {
        std::vector<float> small(3, static_cast<float>(rank));
        control->all_reduce(small, transport::far());
        if (small[2] != 1.0F) return "wrong";
      }
      exchange.join();
      if (large[7] != 1048576.0F) return "wrong sum";
    }
    control->barrier(transport::far());  // the other channel's end is not this one's
    return "ok";
  });
  for (const Rank rank : {0, 1}) EXPECT_EQ(processes.read_line(rank), "ok");
}

TEST(ProcessShared, SurvivesDamageToTheSharedMemory) {
  for (Seed seed = 0; seed < 10; ++seed) {
    const Processes processes(group_of(3), [&](ProcessShared& shared, Rank rank) -> std::string {
      const auto channel = shared.channel(0);
      channel->barrier(transport::far());
      shared.activity(rank, 0)->set(1, Phase::kComputing);
      if (rank == 2) {
        // The activities end the board; channel 0 begins at the next page.
        auto* activity = reinterpret_cast<std::byte*>(shared.activity(2, 0).get());
        RandomStream random(seed, "damage");
        for (int i = 0; i < 3000; ++i) {
          activity[random.below(6000)] = static_cast<std::byte>(random.below(256));
        }
        _exit(0);
      }
      for (int i = 0; i < 3; ++i) {
        std::vector<float> values(10);
        channel->all_reduce(values, deadline_in(1s));
        channel->all_gather(Bytes(10), deadline_in(1s));
      }
      return "ok";
    });
    for (const Rank rank : {0, 1}) EXPECT_NE(processes.read_line(rank), "") << "it crashed";
  }
}

TEST(SharedMapping, RefusesWhatIsNotThere) {
  EXPECT_THROW(SharedMapping::open("/dev/shm/cohort-nothing", 4096), RunError);
  const auto mapping = SharedMapping::create(4096);
  EXPECT_THROW(SharedMapping::open(mapping.name(), 8192), RunError);
  EXPECT_THROW(SharedMapping::create(std::size_t{1} << 50), RunError);
  struct stat status {};
  ASSERT_EQ(stat(mapping.name().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace cohort::collectives
