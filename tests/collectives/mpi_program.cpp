// Run under mpirun by mpi_test.py: one scenario over the collectives of MPI (`link`, each process
// as a host of its own) or over a whole job (`job`, ranks as threads of processes of hosts). Every
// rank writes a line, "rank N after T s: ...".
//
//   mpi_program link SCENARIO
//   mpi_program job SCENARIO WORKERS PROCESSES_PER_HOST
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "collectives/mpi_collectives.h"
#include "core/error.h"
#include "launch/mpi_job.h"

namespace cohort::collectives {
namespace {

Deadline far() { return deadline_in(std::chrono::seconds(60)); }

Bytes pattern(std::size_t length, int salt) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 31 + salt);
  return bytes;
}

void expect(bool condition, const char* what) {
  if (!condition) throw RunError(std::string("wrong: ") + what);
}

void sums(Collectives& group) {
  const int size = group.size();
  for (const std::size_t numel : {0, 1, 1000, 1500001}) {
    std::vector<float> values(numel);
    for (std::size_t i = 0; i < numel; ++i) values[i] = static_cast<float>(i % 100 + group.rank());
    group.all_reduce(values, far());
    for (std::size_t i = 0; i < numel; ++i) {
      expect(values[i] == static_cast<float>(i % 100 * size + size * (size - 1) / 2), "sum");
    }
  }
  const auto all = group.all_gather(pattern(group.rank() * 300000, group.rank()), far());
  for (Rank from = 0; from < size; ++from) {
    expect(all[from] == pattern(from * 300000, from), "gather");
  }
  for (Rank root = 0; root < size; ++root) {
    Bytes bytes = group.rank() == root ? pattern(5000000, root) : Bytes(5000000);
    group.broadcast(bytes, root, far());
    expect(bytes == pattern(5000000, root), "broadcast");
  }
  group.barrier(far());
  expect((group.traffic().received > 0) == (size > 1), "traffic");
}

void scenario(const std::string& name, Collectives& group, Activity& activity) {
  activity.set(17, Phase::kComputing);
  group.barrier(far());
  if (name == "sums") sums(group);
  if (name == "leave") {
    if (group.rank() == 1) return group.leave("its disk is full");
    group.barrier(far());
  }
  if (name == "mismatch") {
    std::vector<float> values(100 + group.rank());
    group.all_reduce(values, far());
  }
  if (name == "late") {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // two heartbeats
    if (group.rank() != 1) return group.barrier(deadline_in(std::chrono::milliseconds(500)));
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  if (name == "stop" || name == "kill") {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    if (group.rank() == 1) std::raise(name == "stop" ? SIGSTOP : SIGKILL);
    group.barrier(far());
  }
}

void report(Rank rank, Clock::time_point start, const std::string& result) {
  const std::string line = "rank " + std::to_string(rank) + " after " +
                           std::to_string(seconds_between(start, Clock::now())) + " s: " + result +
                           "\n";
  // In one piece, so that the lines of processes do not mix.
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

int run_job(const std::string& name, int workers, int processes_per_host) {
  launch::JobOptions options;
  options.workers = workers;
  options.silence = std::chrono::seconds(2);
  const auto start = Clock::now();
  const auto job = launch::make_mpi_job(options, processes_per_host);
  std::vector<Membership> members = job->join();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (Membership& member : members) {
    threads.emplace_back([&] {
      std::string result = "ok";
      try {
        scenario(name, *member.control, *member.activity);
        scenario(name, *member.gradients, *member.activity);
      } catch (const Error& error) {
        result = error.what();
        member.leave(error.what());
        ++failures;
      }
      report(member.rank, start, result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failures == 0 && name == "sums") {
    const auto all = job->between_processes().all_gather(Bytes(job->shape().process), far());
    for (int process = 0; process < job->shape().processes; ++process) {
      expect(all[process].size() == static_cast<std::size_t>(process), "order of processes");
    }
  }
  members.clear();
  return failures == 0 ? 0 : 1;
}

int run_link(const std::string& name) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MpiMembers members;
  for (Rank member = 0; member < size; ++member) {
    members.ranks.push_back({member});
    members.hosts.push_back("host" + std::to_string(member));
  }
  members.activities.push_back(std::make_shared<Activity>());
  members.silence = std::chrono::seconds(2);
  const auto start = Clock::now();
  std::string result = "ok";
  const auto link = MpiLink::create(MPI_COMM_WORLD, members, far());
  const auto group = link->channel(far());
  try {
    scenario(name, *group, *members.activities[0]);
  } catch (const Error& error) {
    result = error.what();
  }
  report(rank, start, result);
  const bool well = link->failure().empty();
  link->close();
  return well ? 0 : 1;
}

}  // namespace
}  // namespace cohort::collectives

int main(int, char** arguments) {
  // mpirun asks the others to end when one has died; here they are to say first what they saw.
  std::signal(SIGTERM, SIG_IGN);
  const std::string subject = arguments[1];
  int status = 0;
  if (subject == "link") {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    status = cohort::collectives::run_link(arguments[2]);
    if (status == 0) MPI_Finalize();
  } else {
    status = cohort::collectives::run_job(arguments[2], std::atoi(arguments[3]),
                                          std::atoi(arguments[4]));
  }
  // Time for every process to say what it saw, before mpirun ends the others.
  if (status != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  cohort::launch::end_if_mpi_is_unfinished(status);
  return status;
}
