#include "launch/local_processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "launch/child_process.h"

namespace cohort::launch {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;

constexpr std::string_view kForeign[] = {
    "OMPI_",       "PMI_",        "PMIX_",       "MPI_LOCAL",   "SLURM_STEP_", "SLURM_PROCID=",
    "RANK=",       "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD", "MASTER_",     "TORCHELASTIC_",
    "COHORT_JOB=", "COHORT_RANK", "COHORT_WORK", "COHORT_SERV"};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

LocalProcesses::~LocalProcesses() {
  for (int number = 0; number < count(); ++number) {
    One& one = all_[number];
    if (one.running) {
      kill(number);
      int state = 0;
      while (::waitpid(one.pid, &state, 0) < 0 && errno == EINTR) {
      }
    }
    if (one.errors >= 0) ::close(one.errors);
  }
}

int LocalProcesses::start(const LocalProcess& process) {
  One one;
  one.process = process;
  launch(one);
  all_.push_back(std::move(one));
  return count() - 1;
}

void LocalProcesses::start_again(int number) { launch(all_[number]); }

void LocalProcesses::start_again(int number, const std::vector<std::string>& words) {
  One once = all_[number];
  once.process.command.insert(once.process.command.end(), words.begin(), words.end());
  launch(once);
  once.process = all_[number].process;
  all_[number] = std::move(once);
}

void LocalProcesses::launch(One& one) {
  // Made before the fork: afterwards only calls that are safe in a copy of a threaded process.
  std::vector<std::string> environment = one.process.environment;
  environment.insert(environment.end(), control_.environment.begin(), control_.environment.end());
  const std::vector<char*> arguments = pointers(one.process.command);
  const std::vector<char*> variables = pointers(environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw RunError(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) exec_child(arguments.data(), variables.data(), ends[1], parent);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw RunError("cannot start " + one.process.name + ": " + std::strerror(errno));
  }
  if (one.errors >= 0) ::close(one.errors);
  one.errors = ends[0];
  one.pid = child;
  one.running = true;
  one.by_signal = false;
  one.status = 0;
  one.started = Clock::now();
}

void LocalProcesses::finish_line(One& one) {
  if (one.line.empty()) return;
  // Some say themselves who they are.
  const bool marked = one.line.starts_with(one.process.prefix);
  control_.errors(marked ? one.line : one.process.prefix + one.line);
  one.line.clear();
}

void LocalProcesses::relay(One& one) {
  std::array<char, 65536> buffer;
  for (int i = 0; i < kReadsPerPoll && one.errors >= 0; ++i) {
    const ssize_t count = ::read(one.errors, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      ::close(std::exchange(one.errors, -1));
      return;
    }
    std::string_view text(buffer.data(), static_cast<std::size_t>(count));
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::size_t length = end == std::string_view::npos ? text.size() : end + 1;
      one.line += text.substr(0, length);
      text.remove_prefix(length);
      if (end != std::string_view::npos || one.line.size() > kLongestLine) finish_line(one);
    }
  }
}

void LocalProcesses::note_end(One& one, int state) {
  // What it left in the pipe; not to its end, which a stray process of its own may hold open.
  relay(one);
  finish_line(one);
  one.running = false;
  one.by_signal = WIFSIGNALED(state);
  one.status = one.by_signal ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

std::vector<int> LocalProcesses::wait() {
  std::vector<int> ended;
  for (int number = 0; number < count(); ++number) {
    One& one = all_[number];
    int state = 0;
    if (!one.running || ::waitpid(one.pid, &state, WNOHANG) != one.pid) continue;
    note_end(one, state);
    ended.push_back(number);
  }
  if (!ended.empty()) return ended;
  std::vector<pollfd> watched;
  for (const One& one : all_) {
    watched.push_back({.fd = one.running ? one.errors : -1, .events = POLLIN, .revents = 0});
  }
  if (::poll(watched.data(), watched.size(), kPollEveryMs) > 0) {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents != 0) relay(all_[i]);
    }
  }
  return {};
}

void LocalProcesses::signal(int number, int which) {
  if (running(number)) ::kill(pid(number), which);
}

void LocalProcesses::kill(int number) {
  if (!running(number)) return;
  ::kill(-pid(number), SIGKILL);
  ::kill(pid(number), SIGKILL);  // it may not have its own group yet
}

void LocalStops::look(LocalProcesses& processes, int first, int last) {
  const int stops = control_.stops();
  if (stops == 0) return;
  const Clock::time_point now = Clock::now();
  asked_.resize(static_cast<std::size_t>(processes.count()), false);
  for (int number = first; stops == 1 && number < last; ++number) {
    if (asked_[number] || now < processes.started(number) + kStartTime) continue;
    processes.signal(number, SIGUSR1);
    asked_[number] = true;
  }
  if (stops < 2) return;
  for (int number = 0; number < processes.count(); ++number) {
    if (!ending_) processes.signal(number, SIGTERM);
    if (ending_ && now > kill_at_) processes.kill(number);
  }
  if (!std::exchange(ending_, true)) kill_at_ = now + kHardStopAfter;
}

std::string ending_text(const LocalProcesses& processes, int number) {
  const int status = processes.status(number);
  if (!processes.killed(number)) return "ended with status " + std::to_string(status);
  const char* what = ::strsignal(status - 128);
  return "was ended by signal " + std::to_string(status - 128) + " (" +
         (what == nullptr ? "unknown" : what) + ")";
}

std::vector<std::uint16_t> free_ports(int count) {
  std::vector<int> sockets;  // held together, so that no port comes twice
  std::vector<std::uint16_t> ports;
  int error = 0;
  while (error == 0 && static_cast<int>(ports.size()) < count) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket >= 0) sockets.push_back(socket);
    if (socket < 0 || ::bind(socket, generic, length) != 0 ||
        ::getsockname(socket, generic, &length) != 0) {
      error = errno;
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int socket : sockets) ::close(socket);
  if (error != 0) throw RunError(std::string("cannot find a free port: ") + std::strerror(error));
  return ports;
}

std::vector<std::string> environment_for_children(const char* const* environment) {
  std::vector<std::string> kept;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const bool foreign =
        std::any_of(std::begin(kForeign), std::end(kForeign),
                    [&](std::string_view begin) { return entry.starts_with(begin); });
    if (!foreign) kept.emplace_back(entry);
  }
  return kept;
}

}  // namespace cohort::launch
