#include "launch/processes_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "collectives/farewell.h"
#include "collectives/process_shared.h"
#include "core/error.h"
#include "launch/process_messages.h"
#include "launch/process_ranks.h"
#include "launch/rendezvous.h"

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5};

ProcessPlan plan_of(const JobOptions& options, const std::optional<Place>& place) {
  ProcessPlan plan;
  if (!place && options.workers > 1) {
    const std::string workers = std::to_string(options.workers);
    throw ConfigError("--engine processes with --workers " + workers +
                      " needs several processes, and this one was started alone: begin the "
                      "command with `torchrun --no_python --nproc_per_node " +
                      workers + "` or `mpirun -n " + workers + "`, or use --engine threads");
  }
  if (!place) return plan;
  if (place->local_size > 0 && place->local_size < place->size) {
    const std::string size = std::to_string(place->size);
    throw ConfigError(place->source + " started " + size + " processes, " +
                      std::to_string(place->local_size) +
                      " of them on this host: --engine processes is for one host, and many hosts "
                      "need MPI: `mpirun -n " +
                      size + "` or `cohort launch -n " + size + " --hosts FILE --`");
  }
  plan.processes = place->size;
  plan.process = place->rank;
  plan.host_index = place->rank;
  plan.local_size = ranks_per_process(options.workers, plan.processes);
  plan.hosts = {{}};
  for (int process = 0; process < plan.processes; ++process) plan.hosts[0].push_back(process);
  return plan;
}

// What the processes of this job have in common and those of other jobs have not.
std::string key_of(const Place& place, const Variable& variable) {
  std::string key;
  const auto add = [&](const char* name) {
    if (const char* value = variable(name)) key += std::string(name) + "=" + value + "\n";
  };
  if (place.source == "torchrun") {
    for (const char* name : {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
      add(name);
    }
  } else if (place.source == "Slurm") {
    for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID"}) add(name);
  } else {
    for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID"}) add(name);
  }
  return place.source + "\n" + (key.empty() ? "parent=" + std::to_string(::getppid()) + "\n" : key);
}

std::string seconds_of(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", 1e-3 * static_cast<double>(time.count()));
  return text;
}

class ProcessesJob final : public Job {
 public:
  ProcessesJob(const JobOptions& options, const Variable& variable, const std::string& fallback)
      : options_(options) {
    const std::optional<Place> place = detect_place(variable);
    plan_ = plan_of(options, place);
    if (plan_.processes > 1) {
      Rendezvous rendezvous(private_folder(variable, fallback), key_of(*place, variable));
      const Deadline deadline = deadline_in(options.start_timeout);
      shared_ = plan_.leads() ? invite(rendezvous, deadline) : come(rendezvous, deadline);
      try {
        shared_->wait_for_all(deadline);
      } catch (const PeerError& error) {
        throw PeerError(std::string(error.what()) + " within " + seconds_of(options.start_timeout) +
                        " (" + place->source + " counts " + std::to_string(plan_.processes) +
                        " processes, and all must be on this "
                        "host, with the same key in " +
                        rendezvous.path() + ")");
      }
    }
    activities_ = activities_of(plan_, shared_);
    main_ = note_failures(between(kMain), failed_);
    if (options.messages && plan_.processes > 1) {
      connect(private_folder(variable, fallback), deadline_in(options.start_timeout));
    }
  }
  ProcessesJob(const ProcessesJob&) = delete;
  ProcessesJob& operator=(const ProcessesJob&) = delete;

  ~ProcessesJob() override {
    if (failed_->load()) return;
    try {
      main_->barrier(deadline_in(std::min(kFarewellTime, options_.start_timeout)));
    } catch (const std::exception&) {
      // The others have ended, or will find out: nothing here depends on them any more.
    }
  }

  JobShape shape() const override { return shape_of(plan_); }
  Collectives& between_processes() override { return *main_; }

  std::vector<Membership> join() override {
    std::vector<Membership> members = join_processes(
        plan_, activities_, [this](GroupChannel channel) { return between(channel); }, failed_);
    if (options_.messages) give_messages(members, rank_messages(plan_, std::move(messages_)));
    if (options_.messages && plan_.processes > 1) members.front().links = meter_;
    return members;
  }

  void skip_farewell() override { failed_->store(true); }

 private:
  // Makes what is shared, and tells of it until all have come or given up.
  std::shared_ptr<ProcessShared> invite(Rendezvous& rendezvous, Deadline deadline) {
    auto shared = ProcessShared::create(plan_.host_group(options_.silence), plan_.process);
    rendezvous.publish({.memory = shared->name(),
                        .processes = plan_.processes,
                        .workers = plan_.size(),
                        .pid = 0,
                        .start = 0},
                       deadline);
    return shared;
  }

  std::shared_ptr<ProcessShared> come(const Rendezvous& rendezvous, Deadline deadline) {
    std::string failure;
    while (Clock::now() < deadline) {
      if (const std::optional<Notice> notice = rendezvous.look()) {
        check_counts(*notice);
        try {
          return ProcessShared::open(notice->memory, plan_.host_group(options_.silence),
                                     plan_.process);
        } catch (const RunError& error) {
          // Process 0 may have given up between the two looks, and another may come in its place.
          failure = error.what();
        }
      }
      std::this_thread::sleep_for(kLookEvery);
    }
    if (!failure.empty()) throw RunError(failure);
    throw PeerError(list_of(plan_.ranks_of(plan_.process)) + " waited " +
                    seconds_of(options_.start_timeout) + " for process 0, with " +
                    list_of(plan_.ranks_of(0)) +
                    ", which did not start on this host (no notice in " + rendezvous.path() + ")");
  }

  // Messages take links over loopback, which use shared memory by themselves.
  void connect(const std::string& folder, Deadline deadline) {
    TcpNodeOptions own;
    own.job = random_job_id();
    main_->broadcast(own.job, 0, deadline);
    own.rank = plan_.process;
    own.size = plan_.processes;
    own.credentials = options_.credentials;
    own.links.silence = options_.silence;
    own.links.meter = meter_;
    own.runtime_folder = folder;
    own.log = options_.note;
    TcpNode node(own);
    const std::string address = node.address().text();
    std::vector<Address> addresses;
    for (const Bytes& text : main_->all_gather(std::as_bytes(std::span(address)), deadline)) {
      addresses.push_back(parse_address({reinterpret_cast<const char*>(text.data()), text.size()}));
    }
    messages_ = connect_messages(node, plan_, addresses, /*returns=*/false, deadline);
    node.stop_listening();
  }

  void check_counts(const Notice& notice) const {
    if (notice.processes == plan_.processes && notice.workers == plan_.size()) return;
    const auto count = [](int processes, int workers) {
      return std::to_string(processes) + " processes and " + std::to_string(workers) + " workers";
    };
    throw ConfigError("process " + std::to_string(plan_.process) + " counts " +
                      count(plan_.processes, plan_.size()) + ", but process 0 (" +
                      std::to_string(notice.pid) + ") counts " +
                      count(notice.processes, notice.workers) +
                      "; start all with the same WORLD_SIZE and --workers, and each job with a "
                      "MASTER_PORT of its own");
  }

  // One member a process.
  std::unique_ptr<Collectives> between(GroupChannel channel) const {
    return shared_ ? shared_->channel(channel) : lone_group(plan_);
  }

  JobOptions options_;
  ProcessPlan plan_;
  FailureFlag failed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<ProcessShared> shared_;              // null where this process is alone
  std::vector<std::shared_ptr<Activity>> activities_;  // of the ranks that live here
  std::unique_ptr<Collectives> main_;
  std::unique_ptr<Transport> messages_;  // between processes, until join() takes it
  std::shared_ptr<TrafficMeter> meter_ = std::make_shared<TrafficMeter>();  // of their links
};

}  // namespace

std::unique_ptr<Job> make_processes_job(const JobOptions& options, const Variable& variable,
                                        const std::string& fallback_folder) {
  return std::make_unique<ProcessesJob>(options, variable, fallback_folder);
}

std::unique_ptr<Job> make_processes_job(const JobOptions& options) {
  return make_processes_job(options, own_variable, fallback_folder());
}

}  // namespace cohort
