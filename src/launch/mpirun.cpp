#include "launch/mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "launch/environment.h"
#include "launch/hosts_file.h"

namespace cohort::launch {
namespace {

std::string find_program(const std::string& search_path, const std::string& name) {
  for (const std::string& folder : split(search_path, ':')) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (!folder.empty() && std::filesystem::is_regular_file(path, ignored) &&
        ::access(path.c_str(), X_OK) == 0) {
      return path.string();
    }
  }
  return "";
}

std::string with_threads(const LaunchRequest& request) {
  return "run the workers as threads: cohort train --engine threads --workers " +
         std::to_string(request.processes);
}

LaunchCommand choose_launcher(const LaunchRequest& request, const LaunchHost& host) {
  const std::string mpirun = find_program(host.search_path, "mpirun");
  const std::string srun = find_program(host.search_path, "srun");
  if (request.launcher == "srun") {
    if (!host.in_slurm) throw ConfigError("srun needs a Slurm allocation: use salloc or sbatch");
    if (srun.empty()) throw ConfigError("srun is not on the PATH: install Slurm's client");
    return {"srun", {srun}};
  }
  if (request.launcher != "auto" && request.launcher != "mpirun") {
    const std::vector<std::string> known = {"auto", "mpirun", "srun"};
    throw ConfigError(unknown_name("launcher", request.launcher, known));
  }
  if (!mpirun.empty()) return {"mpirun", {mpirun}};
  if (request.launcher == "auto" && host.in_slurm && !srun.empty()) return {"srun", {srun}};
  throw ConfigError(
      "mpirun is not on the PATH: install Open MPI (Debian, Ubuntu: apt install openmpi-bin; "
      "Fedora: dnf install openmpi), or " +
      with_threads(request));
}

void check_slots(const LaunchRequest& request, const LaunchHost& host) {
  if (request.processes < 1) throw ConfigError("-n must be at least 1");
  std::optional<int> slots;
  if (!request.hosts_file.empty()) {
    slots = total_slots(read_hosts_file(request.hosts_file));
  } else if (!host.in_slurm) {
    slots = host.slots;
  }
  if (request.oversubscribe || !slots || request.processes <= *slots) return;
  throw ConfigError("-n " + std::to_string(request.processes) + " but " + std::to_string(*slots) +
                    (*slots == 1 ? " slot" : " slots") +
                    ": give --oversubscribe, or more slots in --hosts FILE");
}

// The engine that the program's own arguments name, or "".
std::string named_engine(const std::vector<std::string>& arguments) {
  std::string engine;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == kEngineFlag && i + 1 < arguments.size()) engine = arguments[i + 1];
    if (word.starts_with(kEngineFlag) && word.size() > kEngineFlag.size() &&
        word[kEngineFlag.size()] == '=') {
      engine = word.substr(kEngineFlag.size() + 1);
    }
  }
  return engine;
}

std::vector<std::string> program_arguments(const LaunchRequest& request) {
  std::vector<std::string> arguments = request.arguments;
  if (arguments.empty()) throw ConfigError("what to launch? Such as: -- train --model resnet20");
  const std::string named = named_engine(arguments);
  const std::string engine = named.empty() ? request.engine : named;
  if (engine == "threads" || engine == "nccl") {
    throw ConfigError("--engine " + engine + " needs no launcher: each of the " +
                      std::to_string(request.processes) + " processes would train alone; leave " +
                      "--engine out, or " + with_threads(request));
  }
  if (named.empty() && arguments.front() == "train") {
    arguments.insert(arguments.end(), {std::string(kEngineFlag), request.engine});
  }
  return arguments;
}

void add(std::vector<std::string>& command, std::initializer_list<std::string> words) {
  command.insert(command.end(), words);
}

void add_mpirun_options(std::vector<std::string>& command, const LaunchRequest& request,
                        const LaunchHost& host) {
  if (host.root) add(command, {"--allow-run-as-root"});
  add(command, {"-n", std::to_string(request.processes)});
  if (!request.hosts_file.empty()) add(command, {"--hostfile", request.hosts_file});
  if (request.oversubscribe) add(command, {"--oversubscribe"});
  // Left to itself it ties a process to one core, on which then all its threads would take turns:
  // those that compute, load data and exchange gradients.
  add(command, {"--bind-to", "none"});
  if (!request.agent.empty()) {
    add(command, {"--mca", "plm_rsh_agent", request.agent});
  } else if (!request.hosts_file.empty()) {
    // Nobody could answer a question, and without a limit a dead host is waited for minutes.
    add(command, {"--mca", "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10"});
  }
  for (const std::string& name : host.variables) {
    for (const char* prefix : {"COHORT_", "OPENBLAS_", "OMP_"}) {
      if (name.starts_with(prefix)) add(command, {"-x", name});
    }
  }
}

void add_srun_options(std::vector<std::string>& command, const LaunchRequest& request) {
  if (!request.hosts_file.empty() || !request.agent.empty()) {
    throw ConfigError(
        "srun takes its hosts from Slurm: leave out --hosts and --agent, or use "
        "--with mpirun");
  }
  add(command, {"-n", std::to_string(request.processes), "--kill-on-bad-exit=1"});
  if (request.oversubscribe) add(command, {"--overcommit"});
  add(command, {"--cpu-bind=none"});
}

}  // namespace

LaunchHost this_host(const Variable& variable, const char* const* names) {
  LaunchHost host;
  if (const char* path = variable("PATH"); path != nullptr) host.search_path = path;
  for (; names != nullptr && *names != nullptr; ++names) {
    const std::string_view entry = *names;
    host.variables.emplace_back(entry.substr(0, entry.find('=')));
  }
  std::sort(host.variables.begin(), host.variables.end());
  host.root = ::geteuid() == 0;
  host.in_slurm = variable("SLURM_JOB_ID") != nullptr;
  host.slots = local_slots();
  return host;
}

LaunchCommand launch_command(const LaunchRequest& request, const LaunchHost& host) {
  const std::vector<std::string> arguments = program_arguments(request);
  LaunchCommand command = choose_launcher(request, host);
  check_slots(request, host);
  if (command.launcher == "mpirun") {
    add_mpirun_options(command.arguments, request, host);
  } else {
    add_srun_options(command.arguments, request);
  }
  command.arguments.push_back(request.program.string());
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  return command;
}

std::string quoted(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace cohort::launch
