#include "core/failpoint.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/text.h"

namespace cohort {
namespace {

enum class Verb { kCrash, kError, kLostGpu, kSleep };

struct Action {
  Verb verb = Verb::kError;
  std::chrono::milliseconds duration{0};  // of a sleep
  long at = 0;                            // 0: every time
  long reached = 0;
};

struct Table {
  std::mutex mutex;  // guards actions
  std::map<std::string, Action, std::less<>> actions;
};

// The one process-wide table of the project: a failpoint must be reachable from anywhere, and it
// exists in test builds only.
Table& table() {
  static Table instance;
  return instance;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

[[maybe_unused]] std::pair<std::string, Action> parse(const std::string& entry) {
  const auto refuse = [&] {
    throw ConfigError(
        "malformed failpoint '" + entry +
        "'; write name=crash, name=error, name=lost-gpu, name=sleep:MILLISECONDS, or any of them "
        "with @N");
  };
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos || equals == 0) refuse();
  const std::vector<std::string> words = split(entry.substr(equals + 1), '@');
  if (words.empty() || words.size() > 2) refuse();
  Action action;
  if (words[0] == "crash") {
    action.verb = Verb::kCrash;
  } else if (words[0] == "lost-gpu") {
    action.verb = Verb::kLostGpu;
  } else if (words[0].starts_with("sleep:") && is_number(words[0].substr(6))) {
    action.verb = Verb::kSleep;
    action.duration = std::chrono::milliseconds(std::stol(words[0].substr(6)));
  } else if (words[0] != "error") {
    refuse();
  }
  if (words.size() == 2) {
    if (!is_number(words[1])) refuse();
    action.at = std::stol(words[1]);
  }
  return {entry.substr(0, equals), action};
}

// What is to be done at a place now; nothing when it was not named or its time has not come.
std::optional<Action> reached(std::string_view name) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().actions.find(name);
  if (found == table().actions.end()) return std::nullopt;
  Action& action = found->second;
  ++action.reached;
  if (action.at != 0 && action.reached != action.at) return std::nullopt;
  return action;
}

}  // namespace

void set_failpoints(std::string_view text) {
#ifndef COHORT_FAILPOINTS
  if (!text.empty()) throw ConfigError("this build has no failpoints; use the dev preset");
#else
  std::map<std::string, Action, std::less<>> actions;
  for (const std::string& entry : split(text, ';')) actions.insert(parse(entry));
  const std::lock_guard lock(table().mutex);
  table().actions = std::move(actions);
#endif
}

void detail::reach_failpoint(std::string_view name) {
  const std::optional<Action> action = reached(name);
  if (!action) return;
  if (action->verb == Verb::kSleep) {
    std::this_thread::sleep_for(action->duration);
    return;
  }
  if (action->verb == Verb::kCrash) ::kill(::getpid(), SIGKILL);
  if (action->verb == Verb::kLostGpu) throw RunError("CUDA error: unspecified launch failure");
  throw FileError("failpoint " + std::string(name) + ": injected input/output error");
}

}  // namespace cohort
