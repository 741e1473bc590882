// Run under mpirun by mpi_test.py: one scenario over the collectives of MPI; a line of result for
// each process on standard output, "rank N: ...".
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "collectives/mpi_collectives.h"
#include "core/error.h"

namespace cohort {
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
  for (const std::size_t numel : {0, 1, 1000, 3000001}) {
    std::vector<float> values(numel);
    for (std::size_t i = 0; i < numel; ++i) values[i] = static_cast<float>(i % 100 + group.rank());
    group.all_reduce(values, far());
    for (std::size_t i = 0; i < numel; ++i) {
      expect(values[i] == static_cast<float>(i % 100 * size + size * (size - 1) / 2), "sum");
    }
  }
  const auto all = group.all_gather(pattern(group.rank() * 3000000, group.rank()), far());
  for (Rank from = 0; from < size; ++from) {
    expect(all[from] == pattern(from * 3000000, from), "gather");
  }
  for (Rank root = 0; root < size; ++root) {
    Bytes bytes = group.rank() == root ? pattern(5000000, root) : Bytes(5000000);
    group.broadcast(bytes, root, far());
    expect(bytes == pattern(5000000, root), "broadcast");
  }
  group.barrier(far());
  expect(group.traffic().received > 0, "traffic");
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
    if (group.rank() != 1) return group.barrier(deadline_in(std::chrono::milliseconds(500)));
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  if (name == "stop") {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    if (group.rank() == 1) std::raise(SIGSTOP);
    group.barrier(far());
  }
}

int run(const std::string& name) {
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
  const double seconds = seconds_between(start, Clock::now());
  std::printf("rank %d after %.1f s: %s\n", rank, seconds, result.c_str());
  std::fflush(stdout);
  const bool well = link->failure().empty();
  link->close();
  return well ? 0 : 1;
}

}  // namespace
}  // namespace cohort

int main(int, char** arguments) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  const int status = cohort::run(arguments[1]);
  if (status != 0) {
    // Time for every process to say what it saw, before mpirun ends the others.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    _exit(status);
  }
  MPI_Finalize();
}
