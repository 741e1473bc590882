// Messages between the ranks of a job, with real processes. COHORT_HOST makes hosts of them, so
// that what goes between hosts goes over tcp here too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job_process.h"
#include "launch/local_processes.h"
#include "launch/tcp_job.h"
#include "launch/threads_job.h"
#include "message_exchange.h"
#include "private_test_folder.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string exchange(Job& job) {
  std::vector<collectives::Membership> members = job.join();
  return on_all_members(members, exchange_with_all);
}

std::string close_one(Job& job) {
  std::vector<collectives::Membership> members = job.join();
  const std::string found = on_all_members(members, one_closes);
  job.between_processes().barrier(deadline_in(20s));
  return found;
}

JobOptions with_messages(int workers) {
  JobOptions options;
  options.workers = workers;
  options.start_timeout = 20s;
  options.messages = true;
  return options;
}

class Messages : public PrivateTestFolder {
 protected:
  Messages() : port_(free_ports(1).front()) {}

  // `hosts`: by process, a letter; a space: this host as it is.
  std::unique_ptr<JobProcess> process(int rank, const std::string& hosts, const JobOptions& options,
                                      const JobProcess::Body& body) const {
    Variables variables = torchrun(rank, static_cast<int>(hosts.size()), port_);
    if (hosts[rank] != ' ') variables["COHORT_HOST"] = std::string("host-") + hosts[rank];
    return std::make_unique<JobProcess>(
        [variables, options, where = folder()] {
          return make_tcp_job(options, lookup(variables), where);
        },
        body);
  }

  // What each process says.
  std::vector<std::string> run(const std::string& hosts, const JobOptions& options,
                               const JobProcess::Body& body) const {
    std::vector<std::unique_ptr<JobProcess>> all;
    for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
      all.push_back(process(rank, hosts, options, body));
    }
    std::vector<std::string> said;
    for (const auto& one : all) said.push_back(one->said(60s));
    return said;
  }

  std::uint16_t port_;
};

TEST_F(Messages, AreNotThereUnlessAskedFor) {
  const auto look = [](Job& job) {
    const std::vector<collectives::Membership> members = job.join();
    return std::string(members[0].messages ? "some" : "none") + ", " +
           std::to_string(members[0].message_traffic().sent);
  };
  JobOptions options = with_messages(2);
  options.messages = false;
  EXPECT_EQ(look(*make_threads_job(options)), "none, 0");
  EXPECT_THAT(run("ab", options, look), testing::Each("none, 0"));
}

TEST_F(Messages, ReachAllRanksOfOneProcess) {
  EXPECT_EQ(exchange(*make_threads_job(with_messages(4))), "ok");
  EXPECT_EQ(close_one(*make_threads_job(with_messages(4))), "ok");
  EXPECT_THAT(run(" ", with_messages(4), exchange), testing::Each("ok"));
}

TEST_F(Messages, ReachAllRanksOfSeveralProcesses) {
  for (const std::string hosts : {"  ", "    ", "ab", "abcd", "aab"}) {
    const int processes = static_cast<int>(hosts.size());
    for (const int workers : {processes, 2 * processes}) {
      if (workers > 6) continue;
      EXPECT_THAT(run(hosts, with_messages(workers), exchange), testing::Each("ok"))
          << "'" << hosts << "' with " << workers;
    }
  }
}

TEST_F(Messages, GoOnAmongTheOthersWhenOneRankCloses) {
  for (const int workers : {3, 6}) {
    for (const std::string hosts : {"   ", "aab"}) {
      EXPECT_THAT(run(hosts, with_messages(workers), close_one), testing::Each("ok"));
    }
  }
}

TEST_F(Messages, EndWithTheMembershipThatLeaves) {
  const auto body = [](Job& job) -> std::string {
    const std::vector<collectives::Membership> members = job.join();
    if (job.shape().process == 1) {
      members[0].leave("its disk is full");
      std::this_thread::sleep_for(300ms);
      return "left";
    }
    members[0].messages->receive(1, 1, deadline_in(20s));
    return "";
  };
  EXPECT_THAT(run("ab", with_messages(0), body)[0], HasSubstr("rank 1 on host-b has closed"));
}

// The ranks of process 1 are lost at once, while those of the others wait for them. What these then
// find, and that they go on with each other.
std::string lose_process_one(Job& job, int signal, double within_s) {
  std::vector<collectives::Membership> members = job.join();
  const int local = job.shape().local_size;
  return on_all_members(members, [&](const collectives::Membership& member) -> std::string {
    transport::Transport& messages = *member.messages;
    const Deadline deadline = deadline_in(20s);
    for (Rank to = 0; to < member.size; ++to) messages.send(to, 1, {}, deadline);
    for (Rank from = 0; from < member.size; ++from) messages.receive(from, 1, deadline);
    const Rank lost = local + member.rank % local;  // one of those
    if (job.shape().process == 1) {
      if (member.rank == local) {
        std::this_thread::sleep_for(200ms);
        std::raise(signal);
      }
      messages.receive(0, 9, deadline);
    }
    const auto start = Clock::now();
    for (const bool sends : {false, true}) {
      try {
        if (sends) messages.send(lost, 1, {}, deadline);
        if (!sends) messages.receive(lost, 1, deadline);
        return "a lost rank is still there";
      } catch (const PeerError& error) {
        const std::string expected = "rank " + std::to_string(lost);
        if (std::strstr(error.what(), expected.c_str()) == nullptr ||
            std::strstr(error.what(), "is lost") == nullptr) {
          return error.what();
        }
      }
    }
    if (seconds_between(start, Clock::now()) > within_s) return "that took too long";
    for (Rank other = 0; other < member.size; ++other) {
      if (other / local == 1) continue;
      messages.send(other, 2, exchange_pattern(300'000, member.rank, other, 2), deadline);
    }
    for (Rank other = 0; other < member.size; ++other) {
      if (other / local == 1) continue;
      const Bytes payload = messages.receive(other, 2, deadline).payload;
      if (!is_pattern(payload, 300'000, other, member.rank, 2)) {
        return "a wrong message";
      }
    }
    return "ok";
  });
}

TEST_F(Messages, NameTheRanksOfAKilledProcessAndGoOnAmongTheOthers) {
  for (const std::string hosts : {"   ", "abc"}) {
    for (const int workers : {3, 6}) {
      const auto said = run(hosts, with_messages(workers), [](Job& job) {
        std::string found = lose_process_one(job, SIGKILL, 2);
        job.skip_farewell();
        return found;
      });
      EXPECT_EQ(said, (std::vector<std::string>{"ok", "", "ok"})) << hosts << workers;
    }
  }
}

TEST_F(Messages, NameTheRanksOfAStoppedProcess) {
  JobOptions options = with_messages(6);
  options.silence = 1s;
  std::vector<std::unique_ptr<JobProcess>> all;
  for (int rank = 0; rank < 3; ++rank) {
    all.push_back(process(rank, "abc", options, [](Job& job) {
      std::string found = lose_process_one(job, SIGSTOP, 4);
      job.skip_farewell();
      return found;
    }));
  }
  EXPECT_EQ(all[0]->said(20s), "ok");
  EXPECT_EQ(all[2]->said(20s), "ok");
}

TEST_F(Messages, AreAgreedUponByAllProcesses) {
  JobOptions without = with_messages(0);
  without.messages = false;
  without.start_timeout = 2s;
  JobOptions with = with_messages(0);
  with.start_timeout = 2s;
  const auto first = process(0, "  ", without, exchange);
  const auto second = process(1, "  ", with, exchange);
  EXPECT_THAT(second->said(5s), AllOf(HasSubstr("2 workers that send each other messages"),
                                      HasSubstr("process 0 counts 2 processes and 2 workers")));
  first->said(5s);
}

}  // namespace
}  // namespace cohort::launch
