#include "core/failpoint.h"

#include <unistd.h>

#include <csignal>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/text.h"

namespace cohort {
namespace {

struct Action {
  bool crash = false;
  long at = 0;  // 0: every time
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

[[maybe_unused]] std::pair<std::string, Action> parse(const std::string& entry) {
  const auto refuse = [&] {
    throw ConfigError("malformed failpoint '" + entry +
                      "'; write name=crash, name=error or name=error@N");
  };
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos || equals == 0) refuse();
  const std::vector<std::string> verb = split(entry.substr(equals + 1), '@');
  if (verb.empty() || verb.size() > 2 || (verb[0] != "crash" && verb[0] != "error")) refuse();
  Action action{.crash = verb[0] == "crash"};
  if (verb.size() == 2) {
    if (verb[1].empty() || verb[1].find_first_not_of("0123456789") != std::string::npos) refuse();
    action.at = std::stol(verb[1]);
  }
  return {entry.substr(0, equals), action};
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
  const std::lock_guard lock(table().mutex);
  const auto found = table().actions.find(name);
  if (found == table().actions.end()) return;
  Action& action = found->second;
  ++action.reached;
  if (action.at != 0 && action.reached != action.at) return;
  if (action.crash) ::kill(::getpid(), SIGKILL);
  throw FileError("failpoint " + std::string(name) + ": injected input/output error");
}

}  // namespace cohort
