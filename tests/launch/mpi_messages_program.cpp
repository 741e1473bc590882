// Run under mpirun by mpi_messages_test.py: messages between the ranks of a job (`exchange`,
// `close`, `kill`, `stop`), or over the transport itself (`cut`, `late`, `idle`). Every rank writes
// a line, "rank N after T s: ...".
//
//   mpi_messages_program SCENARIO [WORKERS]
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "collectives/mpi_transport.h"
#include "launch/mpi_job.h"
#include "message_exchange.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

void report(Rank rank, Clock::time_point start, const std::string& result) {
  const std::string line = "rank " + std::to_string(rank) + " after " +
                           std::to_string(seconds_between(start, Clock::now())) + " s: " + result +
                           "\n";
  // In one piece, so that the lines of processes do not mix.
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

std::string lose_one(const collectives::Membership& member, int signal) {
  transport::Transport& messages = *member.messages;
  const Deadline deadline = deadline_in(20s);
  for (Rank to = 0; to < member.size; ++to) messages.send(to, 1, {}, deadline);
  for (Rank from = 0; from < member.size; ++from) messages.receive(from, 1, deadline);
  if (member.rank == 1) {
    std::this_thread::sleep_for(300ms);
    std::raise(signal);
  }
  try {
    messages.receive(1, 1, deadline);
  } catch (const PeerError& error) {
    for (Rank to = 0; to < member.size; ++to) {
      if (to != 1) messages.send(to, 2, exchange_pattern(5000, member.rank, to, 2), deadline);
    }
    for (Rank from = 0; from < member.size; ++from) {
      if (from != 1) messages.receive(from, 2, deadline);
    }
    return error.what();
  }
  return "a lost rank is still there";
}

int run_job(const std::string& name, int workers) {
  JobOptions options;
  options.workers = workers;
  if (name == "stop" || name == "kill") options.silence = 2s;
  options.messages = true;
  const auto start = Clock::now();
  const auto job = make_mpi_job(options, 0);
  std::vector<collectives::Membership> members = job->join();
  std::atomic<int> failures = 0;
  on_all_members(members, [&](const collectives::Membership& member) -> std::string {
    std::string found;
    try {
      if (name == "exchange") found = exchange_with_all(member);
      if (name == "close") found = one_closes(member);
      if (name == "kill") found = lose_one(member, SIGKILL);
      if (name == "stop") found = lose_one(member, SIGSTOP);
    } catch (const Error& error) {
      found = error.what();
    }
    if (found != "ok") ++failures;
    report(member.rank, start, found);
    return found;
  });
  if (failures == 0 && name == "close") job->between_processes().barrier(deadline_in(20s));
  if (failures > 0) job->skip_farewell();
  members.clear();
  return failures == 0 ? 0 : 1;
}

double own_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Messages longer than a piece, from all to all at once, and short ones in between.
std::string send_in_pieces(transport::Transport& transport) {
  const Deadline deadline = deadline_in(30s);
  const std::array<std::size_t, 6> sizes{999, 1000, 1001, 0, 300'000, 5000};
  for (const std::size_t size : sizes) {
    for (Rank to = 0; to < transport.size(); ++to) {
      transport.send(to, 3, exchange_pattern(size, transport.rank(), to, 3), deadline);
    }
  }
  for (Rank from = 0; from < transport.size(); ++from) {
    for (const std::size_t size : sizes) {
      const Bytes payload = transport.receive(from, 3, deadline).payload;
      if (!is_pattern(payload, size, from, transport.rank(), 3)) {
        return "a wrong message";
      }
    }
  }
  return "ok";
}

std::string wait_in_vain(transport::Transport& transport) {
  const Rank other = (transport.rank() + 1) % transport.size();
  const auto start = Clock::now();
  if (transport.receive_any(4, deadline_in(50ms))) return "a message that nobody sent";
  std::string found = "it did not end";
  try {
    transport.receive(other, 4, deadline_in(100ms));
  } catch (const PeerError& error) {
    found = error.what();
  }
  const double waited = seconds_between(start, Clock::now());
  if (waited < 0.149 || waited > 2) return "it took " + std::to_string(waited) + " s";
  // Who was late may still come.
  transport.send(other, 4, {}, deadline_in(20s));
  if (!transport.receive_any(4, deadline_in(20s))) return "nothing came";
  return found;
}

int run_transport(const std::string& name) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  const auto start = Clock::now();
  collectives::MpiTransportOptions options;
  if (name == "cut") options.piece_bytes = 1000;
  auto transport = collectives::make_mpi_transport(MPI_COMM_WORLD, options, deadline_in(20s));
  std::string found = "ok";
  if (name == "cut") found = send_in_pieces(*transport);
  if (name == "late") found = wait_in_vain(*transport);
  if (name == "idle") {
    std::this_thread::sleep_for(200ms);
    const double before = own_cpu_seconds();
    std::this_thread::sleep_for(2s);
    found = std::to_string((own_cpu_seconds() - before) / 2) + " of a core";
  }
  const Rank rank = transport->rank();
  const auto parting = Clock::now();
  transport.reset();
  if (seconds_between(parting, Clock::now()) > 1.5) found += ", and parted slowly";
  report(rank, start, found);
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace cohort::launch

int main(int count, char** arguments) {
  // mpirun asks the others to end when one has died; here they are to say first what they saw.
  std::signal(SIGTERM, SIG_IGN);
  const std::string name = count > 1 ? arguments[1] : "";
  const int status = count > 2 ? cohort::launch::run_job(name, std::atoi(arguments[2]))
                               : cohort::launch::run_transport(name);
  // Time for every process to say what it saw, before mpirun ends the others.
  if (status != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  cohort::launch::end_if_mpi_is_unfinished(status);
  return status;
}
