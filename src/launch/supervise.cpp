#include "launch/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/clock.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "launch/child_process.h"
#include "network/sockets.h"

namespace cohort::launch {
namespace {

// Reads what is there, up to 1 MiB. False at the end of the stream.
bool relay(int from, const Supervision& supervision) {
  std::array<char, 65536> buffer;
  for (int i = 0; i < kReadsPerPoll; ++i) {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count > 0) {
      supervision.errors({buffer.data(), static_cast<std::size_t>(count)});
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// Passes stop requests on to the child.
class StopRelay {
 public:
  StopRelay(pid_t child, const Supervision& supervision)
      : child_(child), supervision_(supervision) {}

  void look() {
    const int stops = supervision_.stops();
    const Clock::time_point now = Clock::now();
    if (stops == 1 && !asked_ && now >= ask_from_) {
      ::kill(child_, SIGUSR1);
      asked_ = true;
    }
    if (stops > 1 && !ending_) {
      ::kill(child_, SIGTERM);
      ending_ = true;
      kill_at_ = now + kHardStopAfter;
    }
    if (ending_ && now > kill_at_) ::kill(-child_, SIGKILL);
  }

 private:
  pid_t child_;
  const Supervision& supervision_;
  Clock::time_point ask_from_ = Clock::now() + kStartTime;
  bool asked_ = false;
  bool ending_ = false;
  Deadline kill_at_ = {};
};

}  // namespace

int supervise(const std::vector<std::string>& command, const Supervision& supervision) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw RunError(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  network::Descriptor reading(ends[0]);
  network::Descriptor writing(ends[1]);
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw RunError("cannot start " + command[0] + ": " + std::strerror(errno));
  if (child == 0) exec_child(arguments.data(), ::environ, writing.get(), parent);
  writing.close();

  StopRelay stop(child, supervision);
  int state = 0;
  bool open = true;
  for (;;) {
    const pid_t ended = ::waitpid(child, &state, WNOHANG);
    if (ended < 0 && errno != EINTR) {
      throw RunError("cannot wait for " + command[0] + ": " + std::strerror(errno));
    }
    if (ended == child) break;
    stop.look();
    pollfd watched = {.fd = open ? reading.get() : -1, .events = POLLIN, .revents = 0};
    if (::poll(&watched, 1, kPollEveryMs) > 0) open = relay(reading.get(), supervision);
  }
  // What it left in the pipe; not to its end, which a stray process of the job may hold open.
  if (open) relay(reading.get(), supervision);
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

int launch_status(int status, int stops) {
  if (status == 0 || status == kExitBadUsage || status == kExitInterrupted) return status;
  // The signal came before the launcher or the program had learned to take it.
  if (stops == 1 && status == 128 + SIGUSR1) return kExitInterrupted;
  if (stops > 1) return kExitInterrupted;
  return 1;
}

}  // namespace cohort::launch
