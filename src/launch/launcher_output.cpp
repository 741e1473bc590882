#include "launch/launcher_output.h"

#include <algorithm>
#include <utility>

namespace cohort::launch {
namespace {

constexpr std::size_t kDashes = 74;
constexpr int kMaxPageLines = 80;

// Lines of the launcher that stand alone. All that the job says can wait for is their beginning.
constexpr std::string_view kOwnLines[] = {"mpirun: Forwarding signal ",
                                          "ssh: ",
                                          "Connection to ",
                                          "Connection closed by ",
                                          "Connection timed out during ",
                                          "Host key verification failed."};

// Pages that only repeat that a process ended, which the program itself has explained.
constexpr std::string_view kNoise[] = {"exited with non-zero status", "a non-zero exit code",
                                       "MPI_ABORT was invoked", "exiting improperly",
                                       "mpirun: Forwarding signal "};

bool is_dashes(std::string_view line) {
  return line.size() == kDashes && line.find_first_not_of('-') == std::string_view::npos;
}

std::string_view without_break(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

bool is_own_line(std::string_view line) {
  return std::any_of(std::begin(kOwnLines), std::end(kOwnLines),
                     [&](std::string_view own) { return line.starts_with(own); });
}

bool may_become_own(std::string_view begin) {
  if (begin.find_first_not_of('-') == std::string_view::npos) return begin.size() <= kDashes;
  return is_own_line(begin) ||
         std::any_of(std::begin(kOwnLines), std::end(kOwnLines),
                     [&](std::string_view own) { return own.starts_with(begin); });
}

// What stands between `before` and `after`, or to the line's end when `after` is empty.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t found = text.find(before);
  if (found == std::string_view::npos) return "";
  text.remove_prefix(found + before.size());
  const std::string_view line = text.substr(0, text.find('\n'));
  return std::string(after.empty() ? without_break(line) : line.substr(0, line.find(after)));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string in_hosts_file(const LaunchRequest& request) {
  return request.hosts_file.empty() ? "" : " (in " + request.hosts_file + ")";
}

std::string explain_reach(std::string_view text, const LaunchRequest& request) {
  const std::string agent = request.agent.empty() ? "ssh" : request.agent;
  if (const std::string host = between(text, "Could not resolve hostname ", ":"); !host.empty()) {
    return "unknown host " + host + in_hosts_file(request) + ": check its name";
  }
  if (const std::string host = between(text, "connect to host ", " port"); !host.empty()) {
    const std::string rest = between(text, "connect to host " + host, "");
    return "host " + host + in_hosts_file(request) + " cannot be reached" +
           rest.substr(std::min(rest.find(": "), rest.size())) + "; check that `" + agent + " " +
           host + " true` works";
  }
  for (const std::string_view before : {"Connection to ", "Connection closed by "}) {
    if (const std::string host = between(text, before, " port"); !host.empty()) {
      return "host " + host + in_hosts_file(request) + " does not answer; check that `" + agent +
             " " + host + " true` works";
    }
  }
  const std::string either = "; for each host" + in_hosts_file(request) + " check that `" + agent +
                             " HOST true` works without a question";
  if (contains(text, "Host key verification failed") || contains(text, "Permission denied")) {
    return "ssh was refused by a host" + either;
  }
  if (contains(text, "orted: command not found") || contains(text, "orted: not found")) {
    return "Open MPI is missing on a host: install the same version there, on the PATH of "
           "non-interactive shells";
  }
  if (contains(text, "unable to reliably start one or more daemons") ||
      contains(text, "unable to start daemon") || contains(text, "ORTE has lost communication")) {
    return "Open MPI could not be started on a host, or not reach back from there" + either +
           ", that Open MPI is installed there, and that no firewall stands between";
  }
  return "";
}

}  // namespace

LauncherOutput::LauncherOutput(std::function<void(std::string_view)> pass_on)
    : pass_on_(std::move(pass_on)) {}

void LauncherOutput::read(std::string_view chunk) {
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    const std::string_view part =
        chunk.substr(0, end == std::string_view::npos ? chunk.size() : end + 1);
    chunk.remove_prefix(part.size());
    const bool whole = part.back() == '\n';
    if (in_line_) {
      pass_on_(part);
      in_line_ = !whole;
      continue;
    }
    line_ += part;
    if (whole) {
      take_line(std::exchange(line_, ""));
    } else if (page_.empty() && !may_become_own(line_)) {
      pass_on_(std::exchange(line_, ""));
      in_line_ = true;
    }
  }
}

void LauncherOutput::take_line(std::string_view line) {
  const bool dashes = is_dashes(without_break(line));
  if (page_.empty() && !dashes) {
    if (is_own_line(line)) {
      kept_back_ += line;
    } else {
      pass_on_(line);
    }
    return;
  }
  const bool complete = !page_.empty() && dashes;
  page_ += line;
  ++page_lines_;
  if (complete) {
    kept_back_ += std::exchange(page_, "");
    page_lines_ = 0;
  } else if (page_lines_ > kMaxPageLines) {
    give_up_page();
  }
}

void LauncherOutput::give_up_page() {
  if (!page_.empty()) pass_on_(std::exchange(page_, ""));
  page_lines_ = 0;
}

void LauncherOutput::finish() {
  if (!line_.empty()) take_line(std::exchange(line_, ""));
  give_up_page();
}

std::string without_noise(std::string_view text) {
  std::string rest;
  std::string page;
  bool in_page = false;
  const auto close = [&] {
    const bool noise = std::any_of(std::begin(kNoise), std::end(kNoise),
                                   [&](std::string_view part) { return contains(page, part); });
    if (!noise) rest += page;
    page.clear();
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    page += line;
    if (is_dashes(without_break(line))) in_page = !in_page;
    if (!in_page) close();
  }
  close();
  return rest;
}

std::string explain_launch_failure(std::string_view text, const LaunchRequest& request) {
  if (contains(text, "not enough slots available")) {
    return "-n " + std::to_string(request.processes) +
           " is more than the slots: give --oversubscribe, or more slots in --hosts FILE";
  }
  if (contains(text, "could not access\nor execute an executable")) {
    return "there is no program " + between(text, "Executable: ", "") + " on host " +
           between(text, "Node: ", "") + ": install it there at the same path, or share the folder";
  }
  if (std::string why = explain_reach(text, request); !why.empty()) return why;
  if (const std::string signal = between(text, "exited on signal ", ""); !signal.empty()) {
    const std::string rank = between(text, "noticed that process rank ", " ");
    const std::string node = between(text, "on node ", " ");
    return "rank " + rank + " on " + node + " was ended by signal " +
           signal.substr(0, signal.find_last_not_of(". ") + 1);
  }
  return "";
}

}  // namespace cohort::launch
