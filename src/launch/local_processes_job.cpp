#include "launch/local_processes_job.h"

#include <algorithm>
#include <csignal>

#include "core/error.h"
#include "launch/child_process.h"
#include "launch/environment.h"
#include "launch/mpirun.h"
#include "launch/supervise.h"
#include "network/identity.h"

namespace cohort::launch {
namespace {

constexpr std::chrono::seconds kTimeToNotice{15};

// The processes that are left after one failed.
class LateOnes {
 public:
  LateOnes(LocalProcesses& processes, const LocalControl& control)
      : processes_(processes), control_(control) {}

  void begin() { end_at_ = deadline_in(kTimeToNotice); }
  void look() {
    const auto now = Clock::now();
    if (now < end_at_) return;
    for (int number = 0; number < processes_.count(); ++number) {
      if (!processes_.running(number)) continue;
      if (told_) {
        processes_.kill(number);
      } else {
        control_.errors("cohort: " + processes_.name(number) + " did not end by itself within " +
                        std::to_string(kTimeToNotice.count()) + " s: it is told to\n");
        processes_.signal(number, SIGTERM);
      }
    }
    told_ = true;
    end_at_ = now + kHardStopAfter;
  }

 private:
  LocalProcesses& processes_;
  const LocalControl& control_;
  Deadline end_at_ = Deadline::max();
  bool told_ = false;
};

}  // namespace

std::string value_in(const std::vector<std::string>& arguments, std::string_view flag) {
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == flag && i + 1 < arguments.size()) value = arguments[i + 1];
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with('='))
      value = word.substr(flag.size() + 1);
  }
  return value;
}

std::vector<LocalProcess> local_job(const LocalJobRequest& request) {
  if (request.processes < 1) throw ConfigError("-n must be at least 1");
  if (request.arguments.empty()) {
    throw ConfigError("what to launch? Such as: -- train --model resnet20");
  }
  std::vector<std::string> command = {request.program.string()};
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  if (request.arguments.front() == "train" && value_in(request.arguments, kEngineFlag).empty()) {
    command.insert(command.end(), {std::string(kEngineFlag), "tcp"});
  }
  const std::string job =
      request.job.empty() ? network::to_text(network::random_job_id()) : request.job;
  const std::string port = std::to_string(free_ports(1).front());
  const std::string size = std::to_string(request.processes);
  std::vector<LocalProcess> all;
  for (int rank = 0; rank < request.processes; ++rank) {
    const std::string own = std::to_string(rank);
    all.push_back({.name = "process " + own,
                   .command = command,
                   .environment = {"COHORT_JOB=" + job, "RANK=" + own, "WORLD_SIZE=" + size,
                                   "LOCAL_RANK=" + own, "LOCAL_WORLD_SIZE=" + size,
                                   "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}});
  }
  return all;
}

int run_local_job(const std::vector<LocalProcess>& job, const LocalControl& control,
                  const LocalSurvival& survival) {
  LocalProcesses processes(control);
  for (const LocalProcess& process : job) processes.start(process);
  LocalStops stops(control);
  LateOnes late(processes, control);
  // Whether another one goes on, or came to its end.
  const auto others_go_on = [&](int number) {
    for (int other = 0; other < processes.count(); ++other) {
      if (other != number && (processes.running(other) || processes.status(other) == 0)) {
        return true;
      }
    }
    return false;
  };
  int left = processes.count();
  int first_failure = -1;
  bool lost = false;  // one that was not started again
  std::vector<int> restarts(job.size(), 0);
  while (left > 0) {
    for (const int number : processes.wait()) {
      --left;
      if (processes.status(number) == 0 || first_failure >= 0) continue;
      const bool survives = survival.go_on && !stops.any() && others_go_on(number);
      if (survives && restarts[number] > 0 && !processes.killed(number)) {
        control.errors("cohort: " + processes.name(number) + " did not come back: it " +
                       ending_text(processes, number) + "; the others go on\n");
        lost = true;
        continue;
      }
      if (survives && processes.killed(number)) {
        const bool again = restarts[number] < survival.restarts;
        control.errors("cohort: " + processes.name(number) + " " + ending_text(processes, number) +
                       (again ? "; it is started again (" + std::to_string(++restarts[number]) +
                                    " of " + std::to_string(survival.restarts) + ")\n"
                              : "; the others go on\n"));
        lost = lost || !again;
        if (!again) continue;
        processes.start_again(number, survival.words);
        ++left;
        continue;
      }
      first_failure = number;
      if (!stops.any()) {
        control.errors("cohort: " + processes.name(number) + " failed first: it " +
                       ending_text(processes, number) + "\n");
        late.begin();
      }
    }
    stops.look(processes, 0, processes.count());
    late.look();
  }
  const int status = first_failure < 0 ? (lost ? 1 : 0) : processes.status(first_failure);
  return launch_status(status, control.stops());
}

std::string quoted(const LocalProcess& process) {
  return quoted(process.environment) + " " + quoted(process.command);
}

}  // namespace cohort::launch
