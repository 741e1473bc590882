#include "launch/local_processes_servers.h"

#include <algorithm>
#include <csignal>

#include "core/error.h"
#include "core/exit_status.h"
#include "core/private_folder.h"
#include "launch/supervise.h"
#include "network/credentials.h"
#include "network/identity.h"

namespace cohort::launch {
namespace {

constexpr std::chrono::seconds kTimeToEnd{30};
constexpr std::chrono::seconds kTimeToNoticeLoss{3};  // when a worker failed
constexpr std::chrono::seconds kServersHardStopAfter{5};

class ServersJob {
 public:
  ServersJob(const LocalServersRequest& request, const LocalControl& control)
      : servers_(request.servers),
        most_restarts_(request.restarts),
        control_(control),
        processes_(control),
        restarts_(servers_, 0) {}

  int run(const std::vector<LocalProcess>& all) {
    for (const LocalProcess& process : all) processes_.start(process);
    LocalStops stops(control_);
    while (running(0, processes_.count())) {
      for (const int number : processes_.wait()) {
        if (number < servers_) {
          server_ended(number, stops.any());
        } else {
          worker_ended(number, stops.any());
        }
      }
      stops.look(processes_, servers_, processes_.count());
      end_if_due();
      if (!running(servers_, processes_.count())) wait_for_servers();
      if (Clock::now() > kill_at_) {
        for (int number = 0; number < processes_.count(); ++number) processes_.kill(number);
      }
    }
    return status();
  }

 private:
  void say(const std::string& text) const { control_.errors("cohort: " + text + "\n"); }

  bool running(int first, int last) const {
    for (int number = first; number < last; ++number) {
      if (processes_.running(number)) return true;
    }
    return false;
  }

  void tell(int first, int last, int signal) {
    for (int number = first; number < last; ++number) processes_.signal(number, signal);
  }

  void server_ended(int number, bool stopping) {
    const bool workers = running(servers_, processes_.count());
    if (processes_.status(number) == 0 || !workers || stopping || ending_) {
      if (processes_.status(number) == 0 || stopping || ending_ || told_) return;
      say(processes_.name(number) + " " + ending_text(processes_, number));
      failed_ = true;
      return;
    }
    const std::string how = processes_.name(number) + " " + ending_text(processes_, number);
    if (processes_.killed(number) && restarts_[number] < most_restarts_) {
      ++restarts_[number];
      say(how + "; it is started again (" + std::to_string(restarts_[number]) + " of " +
          std::to_string(most_restarts_) + ")");
      processes_.start_again(number);
      return;
    }
    say(how + (processes_.killed(number) ? ", too often" : ""));
    failed_ = true;
    end_at_ = std::min(end_at_, deadline_in(kTimeToNoticeLoss));
  }

  // A server has ended for good. Workers that are done with it are about to end, too.
  void end_if_due() {
    if (ending_ || Clock::now() < end_at_ || !running(servers_, processes_.count())) return;
    say("the job is ended");
    ending_ = true;
    kill_at_ = deadline_in(kServersHardStopAfter);
    tell(0, processes_.count(), SIGTERM);
  }

  void worker_ended(int number, bool stopping) {
    const int status = processes_.status(number);
    if (status == 0) any_done_ = true;
    if (status == 0 || stopping || ending_) return;
    failed_ = true;
    const bool others = running(servers_, processes_.count());
    say(processes_.name(number) + " " + ending_text(processes_, number) +
        (others ? "; the others go on" : ""));
  }

  // After the last worker.
  void wait_for_servers() {
    const auto now = Clock::now();
    if (workers_gone_ == Clock::time_point{}) workers_gone_ = now;
    // Servers that no worker has finished with would wait for others to come; so may one that a
    // worker died too early to be known to.
    const bool hopeless = !any_done_;
    const bool missing = failed_ && now > workers_gone_ + kTimeToNoticeLoss;
    if (!told_ && (hopeless || missing || now > workers_gone_ + kTimeToEnd)) {
      for (int number = 0; number < servers_ && !hopeless && !missing; ++number) {
        if (!processes_.running(number)) continue;
        say(processes_.name(number) + " did not end by itself within " +
            std::to_string(kTimeToEnd.count()) + " s of the last worker: it is told to");
        failed_ = true;
      }
      tell(0, servers_, SIGUSR1);  // which they say nothing to
      told_ = true;
      kill_at_ = now + kServersHardStopAfter;
    }
  }

  int status() const {
    if (control_.stops() > 0) return kExitInterrupted;
    bool all_bad = true;
    for (int number = servers_; number < processes_.count(); ++number) {
      all_bad = all_bad && processes_.status(number) == kExitBadUsage;
    }
    return all_bad ? kExitBadUsage : failed_ ? 1 : 0;
  }

  const int servers_;
  const int most_restarts_;
  const LocalControl& control_;
  LocalProcesses processes_;
  std::vector<int> restarts_;  // by server
  bool failed_ = false;
  bool ending_ = false;    // the job is given up
  bool any_done_ = false;  // a worker ended well
  bool told_ = false;      // the servers were told to end
  Clock::time_point workers_gone_ = {};
  Deadline end_at_ = Deadline::max();
  Deadline kill_at_ = Deadline::max();
};

}  // namespace

LocalServersJob local_servers_job(const LocalServersRequest& request,
                                  const std::filesystem::path& folder) {
  if (request.workers < 1) throw ConfigError("-n must be at least 1");
  if (request.servers < 1) throw ConfigError("--servers must be at least 1");
  if (request.arguments.empty()) {
    throw ConfigError("what to launch? Such as: -- train --method parameter-server");
  }
  const std::filesystem::path state =
      request.state_dir.empty() ? folder / "state" : request.state_dir;
  const std::string workers = std::to_string(request.workers);
  LocalServersJob job{network::to_text(network::random_job_id()), {}};
  const std::string name = "COHORT_JOB=" + job.job;
  const std::vector<std::uint16_t> ports = free_ports(request.servers);
  std::string addresses;
  for (int server = 0; server < request.servers; ++server) {
    const std::string own = std::to_string(server);
    const std::string address = "127.0.0.1:" + std::to_string(ports[server]);
    addresses += (server == 0 ? "" : ",") + address;
    std::vector<std::string> command = {request.program.string()};
    command.insert(command.end(), request.server_arguments.begin(), request.server_arguments.end());
    for (const std::string& word :
         {std::string("--listen"), address, std::string("--index"), own, std::string("--workers"),
          workers, std::string("--state-dir"), (state / ("server-" + own)).string()}) {
      command.push_back(word);
    }
    job.processes.push_back(
        {.name = "server " + own,
         .command = std::move(command),
         .environment = {name, "COHORT_TLS_DIR=" + (folder / "tls" / ("server-" + own)).string()},
         .prefix = "server " + own + ": "});
  }
  std::vector<std::string> command = {request.program.string()};
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  for (int worker = 0; worker < request.workers; ++worker) {
    const std::string own = std::to_string(worker);
    job.processes.push_back(
        {.name = "worker " + own,
         .command = command,
         .environment = {name, "COHORT_RANK=" + own, "COHORT_WORKERS=" + workers,
                         "COHORT_SERVERS=" + addresses,
                         "COHORT_TLS_DIR=" + (folder / "tls" / ("worker-" + own)).string()},
         .prefix = "worker " + own + ": "});
  }
  return job;
}

int run_local_servers(const LocalServersRequest& request, const LocalControl& control) {
  const PrivateFolder folder(std::filesystem::temp_directory_path(), "cohort-job");
  const LocalServersJob job = local_servers_job(request, folder.path());
  network::make_authority(folder.path() / "tls", network::job_id_of(job.job), request.servers,
                          request.workers);
  return ServersJob(request, control).run(job.processes);
}

}  // namespace cohort::launch
