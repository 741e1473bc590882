#include "launch/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace cohort::launch {
namespace {

constexpr int kNotStarted = 127;

}  // namespace

void exec_child(char* const* arguments, char* const* environment, int errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it was killed before the line above
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);  // `errors` breaks before the signal that `parent` is dead comes
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  const char* why = std::strerror(errno);
  static_cast<void>(!::write(STDERR_FILENO, why, std::strlen(why)));
  ::_exit(kNotStarted);
}

}  // namespace cohort::launch
