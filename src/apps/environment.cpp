#include "apps/environment.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>

#include "apps/command.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "launch/environment.h"

namespace cohort::apps {
namespace {

std::atomic<bool> stop_was_requested = false;
std::atomic<bool> says_so = true;  // that the signal was heard: one process of a job does

// Who read what is printed may have ended first, of the same signal or by being killed.
void leave_broken_pipes() {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    pollfd watched = {.fd = stream, .events = 0, .revents = 0};
    if (::poll(&watched, 1, 0) <= 0 || (watched.revents & POLLERR) == 0) continue;
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) continue;
    ::dup2(nothing, stream);
    ::close(nothing);
  }
}

extern "C" void on_broken_pipe(int) {
  const int before = errno;
  leave_broken_pipes();
  errno = before;
}

// From now on nothing that is printed ends the program before it has saved.
void outlive_readers() {
  struct sigaction action = {};
  action.sa_handler = on_broken_pipe;
  ::sigaction(SIGPIPE, &action, nullptr);
  leave_broken_pipes();
}

extern "C" void on_stop_signal(int) {
  if (stop_was_requested.exchange(true)) ::_exit(kExitInterrupted);
  const int before = errno;
  outlive_readers();
  if (says_so) say_stopping();
  errno = before;
}

extern "C" void on_polite_stop_signal(int) {
  const int before = errno;
  stop_was_requested = true;
  outlive_readers();
  errno = before;
}

std::optional<launch::Place> own_place() { return launch::detect_place(launch::own_variable); }

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

data::SearchPath data_search_path() {
  data::SearchPath search;
  if (const std::string own = text_of("COHORT_DATA_DIR"); !own.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(own, ignored)) {
      throw ConfigError("COHORT_DATA_DIR: there is no folder " + own + "; correct or unset it");
    }
    search.emplace_back(own);
  }
  if (const std::string cache = text_of("XDG_CACHE_HOME"); !cache.empty()) {
    search.push_back(std::filesystem::path(cache) / "cohort");
  } else if (const std::string home = text_of("HOME"); !home.empty()) {
    search.push_back(std::filesystem::path(home) / ".cache" / "cohort");
  }
  search.emplace_back("/usr/share/datasets");
  return search;
}

std::string default_data_dir(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) ? folder : "";
}

bool take_place_from_launcher(config::RunConfig& config) {
  const std::string servers = text_of("COHORT_SERVERS");
  if (servers.empty()) return false;
  const auto number = [](const char* name, std::int64_t& into) {
    const std::string text = text_of(name);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, into);
    if (parsed.ec != std::errc{} || parsed.ptr != end || into < 0) {
      throw ConfigError(std::string(name) + " must be a number, got '" + text +
                        "': start workers with cohort launch, or unset COHORT_SERVERS");
    }
  };
  config.servers = servers;
  number("COHORT_RANK", config.rank);
  number("COHORT_WORKERS", config.workers);
  return true;
}

std::atomic<bool>& stop_flag() { return stop_was_requested; }

const std::atomic<bool>& stop_requested() { return stop_was_requested; }

void say_stopping() {
  constexpr std::string_view kText = "\nstopping: finishing what is under way; again to quit\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
}

void watch_signals() {
  const std::optional<launch::Place> place = own_place();
  says_so = !place || place->rank == 0;
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // What launchers pass on to all ranks; one that comes twice is no impatience.
  action.sa_handler = on_polite_stop_signal;
  ::sigaction(SIGUSR1, &action, nullptr);
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) != 0; }

}  // namespace cohort::apps
