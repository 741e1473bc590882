#include "launch/hosts_file.h"

#include <sched.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.h"

namespace cohort::launch {
namespace {

constexpr int kMaxSlots = 1 << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, int line, const std::string& why) {
  throw ConfigError(path.string() + ":" + std::to_string(line) + ": " + why +
                    "; a line names a host and its slots, such as: node1 slots=4");
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.front() == '-') return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view("._-:@%[]").find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::optional<int> to_slots(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 1 || value > kMaxSlots) return std::nullopt;
  return value;
}

HostEntry parse_line(const std::filesystem::path& path, int number, std::istringstream words) {
  HostEntry host;
  words >> host.name;
  if (!is_host_name(host.name)) refuse(path, number, "'" + host.name + "' is not a host's name");
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "slots" || key == "max_slots" || key == "max-slots") {
      const std::optional<int> slots = to_slots(value);
      if (!slots) refuse(path, number, "'" + word + "' must be a number from 1");
      if (key == "slots") host.slots = slots;
    } else if (key != "username" || value.empty()) {
      refuse(path, number, "cannot read '" + word + "'");
    }
  }
  return host;
}

}  // namespace

std::vector<HostEntry> read_hosts_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw FileError("cannot read the hosts file " + path.string() + ": " +
                    (file ? "it is a folder" : std::strerror(errno)));
  }
  std::vector<HostEntry> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    hosts.push_back(parse_line(path, number, std::istringstream(line)));
  }
  if (hosts.empty()) refuse(path, number, "no host in the file");
  return hosts;
}

std::optional<int> total_slots(const std::vector<HostEntry>& hosts) {
  int total = 0;
  for (const HostEntry& host : hosts) {
    if (!host.slots) return std::nullopt;
    total += *host.slots;
  }
  return total;
}

int local_slots() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return threads;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
    std::string list;
    if (!std::getline(siblings, list)) return threads;
    cores.insert(list);
  }
  return cores.empty() ? threads : static_cast<int>(cores.size());
}

}  // namespace cohort::launch
