// Real processes of a job, each given the variables that a launcher would set.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/patience.h"
#include "launch/job.h"
#include "launch/variables.h"

namespace cohort::launch {

inline Variables torchrun(int rank, int size, int port = 29500) {
  return {{"RANK", std::to_string(rank)},        {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},  {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},          {"MASTER_PORT", std::to_string(port)},
          {"TORCHELASTIC_RUN_ID", "../../none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
}

// A process of a job. Sends back what `body` returns, or the message of the error that ended it.
class JobProcess {
 public:
  using Make = std::function<std::unique_ptr<Job>()>;
  using Body = std::function<std::string(Job&)>;

  JobProcess(const Make& make, const Body& body) {
    int ends[2];
    int marks[2];
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_EQ(pipe(marks), 0);
    child_ = fork();
    if (child_ == 0) {
      mark_ = marks[1];
      std::string said;
      try {
        const std::unique_ptr<Job> job = make();
        said = body(*job);
      } catch (const std::exception& error) {
        said = error.what();
      }
      static_cast<void>(!write(ends[1], said.data(), said.size()));
      _exit(0);
    }
    close(ends[1]);
    close(marks[1]);
    pipe_ = ends[0];
    ready_ = marks[0];
  }
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;
  ~JobProcess() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(pipe_);
    close(ready_);
  }

  // In a body: what await_ready() waits for.
  static void say_ready() { static_cast<void>(!write(mark_, "!", 1)); }
  void await_ready() const {
    char mark = 0;
    EXPECT_EQ(read(ready_, &mark, 1), 1) << said();
  }

  void signal(int number) const { kill(child_, number); }
  pid_t pid() const { return child_; }

  // Everything it says until its end.
  std::string said(std::chrono::milliseconds within = std::chrono::seconds(30)) const {
    const Deadline deadline =
        deadline_in(std::chrono::duration_cast<std::chrono::milliseconds>(patiently(within)));
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
  int ready_ = -1;
  static inline int mark_ = -1;
};

// Says that it is ready when the others know what it does: they are told four times a second.
inline std::string sum_for_ever(Job& job) {
  const std::vector<collectives::Membership> members = job.join();
  members[0].activity->set(17, Phase::kComputing);
  std::vector<float> values(1000);
  const auto start = Clock::now();
  for (bool said = false;;) {
    members[0].gradients->all_reduce(values, deadline_in(std::chrono::seconds(20)));
    if (said || seconds_between(start, Clock::now()) < 1) continue;
    JobProcess::say_ready();
    said = true;
  }
}

// Sums of whole numbers, which are exact in any order.
inline std::string sum_on_all_ranks(Job& job) {
  std::vector<collectives::Membership> members = job.join();
  std::vector<std::string> found(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      const collectives::Membership& member = members[i];
      const Deadline deadline = deadline_in(std::chrono::seconds(20));
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

}  // namespace cohort::launch
