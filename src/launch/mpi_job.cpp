#include "launch/mpi_job.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/hierarchical.h"
#include "collectives/mpi_calls.h"
#include "collectives/mpi_collectives.h"
#include "collectives/mpi_transport.h"
#include "collectives/process_shared.h"
#include "core/error.h"
#include "launch/environment.h"
#include "launch/process_messages.h"
#include "launch/process_ranks.h"

namespace cohort::launch {
namespace {

void initialise(const JobOptions& options, bool& ours) {
  const auto place = detect_place(own_variable);
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun == 0) {
    if (!place && options.workers > 1) {
      const std::string workers = std::to_string(options.workers);
      throw ConfigError("--engine mpi with --workers " + workers +
                        " needs several processes, and this one was started alone: begin the "
                        "command with `mpirun -n " +
                        workers + "`, or `cohort launch -n " + workers +
                        " --`, or use --engine threads");
    }
    int provided = 0;
    collectives::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided),
                           "MPI_Init_thread");
    ours = true;
  }
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    throw ConfigError(
        "this MPI library does not let several threads use it (MPI_THREAD_MULTIPLE); use one that "
        "is built with thread support, or --engine threads");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int size = 1;
  collectives::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (place && place->size != size && place->source != "torchrun") {
    throw ConfigError(
        place->source + " started " + std::to_string(place->size) + " processes, but MPI sees " +
        std::to_string(size) +
        ": the launcher belongs to another MPI library; use this library's mpirun, or "
        "`srun --mpi=pmix`");
  }
}

// All processes are there by then, so that the calls without deadline that follow end at once.
void wait_for_start(Deadline deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  collectives::check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  if (!collectives::wait_for(request, deadline)) {
    throw PeerError("not all processes of the job came within the time for its start");
  }
}

// This process's host: a communicator of its processes.
MPI_Comm host_communicator(int process, int processes_per_host) {
  MPI_Comm host = MPI_COMM_NULL;
  if (processes_per_host > 0) {
    collectives::check_mpi(
        MPI_Comm_split(MPI_COMM_WORLD, process / processes_per_host, process, &host),
        "MPI_Comm_split");
  } else {
    collectives::check_mpi(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, process, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
  }
  MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN);
  return host;
}

ProcessPlan survey(const JobOptions& options, MPI_Comm host) {
  ProcessPlan layout;
  collectives::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &layout.processes), "MPI_Comm_size");
  collectives::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &layout.process), "MPI_Comm_rank");
  collectives::check_mpi(MPI_Comm_rank(host, &layout.host_index), "MPI_Comm_rank");
  layout.local_size = ranks_per_process(options.workers, layout.processes);

  int leader = layout.process;
  collectives::check_mpi(MPI_Bcast(&leader, 1, MPI_INT, 0, host), "MPI_Bcast");
  std::vector<int> leaders(layout.processes);
  collectives::check_mpi(
      MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, MPI_COMM_WORLD),
      "MPI_Allgather");
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(layout.processes * sizeof name);
  collectives::check_mpi(MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name,
                                       MPI_CHAR, MPI_COMM_WORLD),
                         "MPI_Allgather");

  // A leader is the lowest process of its host, so hosts come in the order of their leaders.
  layout.hosts.clear();
  layout.names.clear();
  std::vector<int> host_of(layout.processes);
  for (int process = 0; process < layout.processes; ++process) {
    if (leaders[process] == process) {
      host_of[process] = static_cast<int>(layout.hosts.size());
      layout.hosts.emplace_back();
      layout.names.emplace_back(names.data() + process * sizeof name);
    }
    host_of[process] = host_of[leaders[process]];
    layout.hosts[host_of[process]].push_back(process);
  }
  layout.host = host_of[layout.process];
  return layout;
}

// Shares memory with the other processes of the host. The name goes round, or why there is none.
std::shared_ptr<collectives::ProcessShared> share(const ProcessPlan& layout,
                                                  const JobOptions& options, MPI_Comm host,
                                                  Deadline deadline) {
  const collectives::ProcessGroup group = layout.host_group(options.silence);
  std::shared_ptr<collectives::ProcessShared> shared;
  char message[1024] = "";
  if (layout.leads()) {
    try {
      shared = collectives::ProcessShared::create(group, 0);
      std::snprintf(message, sizeof message, "%s", shared->name().c_str());
    } catch (const RunError& error) {
      std::snprintf(message, sizeof message, "!%s", error.what());
    }
  }
  collectives::check_mpi(MPI_Bcast(message, sizeof message, MPI_CHAR, 0, host), "MPI_Bcast");
  message[sizeof message - 1] = '\0';
  if (message[0] == '!') throw RunError(message + 1);
  if (!shared) shared = collectives::ProcessShared::open(message, group, layout.host_index);
  shared->wait_for_all(deadline);
  return shared;
}

class MpiJob final : public Job {
 public:
  MpiJob(const JobOptions& options, int processes_per_host) : options_(options) {
    initialise(options, ours_);
    const Deadline deadline = deadline_in(options.start_timeout);
    wait_for_start(deadline);
    int process = 0;
    collectives::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &process), "MPI_Comm_rank");
    const MPI_Comm host = host_communicator(process, processes_per_host);
    layout_ = survey(options, host);
    if (layout_.neighbours().size() > 1) shared_ = share(layout_, options, host, deadline);
    activities_ = activities_of(layout_, shared_);
    if (layout_.hosts.size() > 1) connect_hosts(deadline);
    main_ = note_failures(between(kMain), failed_);
    if (options.messages && layout_.processes > 1) {
      collectives::MpiTransportOptions between_processes;
      between_processes.names = process_names(layout_);
      between_processes.silence = options.silence;
      messages_ = collectives::make_mpi_transport(MPI_COMM_WORLD, between_processes, deadline);
    }
  }
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  ~MpiJob() override {
    messages_.reset();
    bool well = !failed_->load() && (!link_ || link_->failure().empty());
    try {
      if (well) main_->barrier(deadline_in(options_.start_timeout));
    } catch (const std::exception&) {
      well = false;
    }
    if (link_) link_->close();
    main_.reset();
    shared_.reset();
    if (well && ours_) MPI_Finalize();
  }

  JobShape shape() const override { return shape_of(layout_); }
  collectives::Collectives& between_processes() override { return *main_; }

  std::vector<collectives::Membership> join() override {
    std::vector<collectives::Membership> members = join_processes(
        layout_, activities_, [this](GroupChannel channel) { return between(channel); }, failed_);
    if (options_.messages) give_messages(members, rank_messages(layout_, std::move(messages_)));
    return members;
  }

  void skip_farewell() override { failed_->store(true); }

 private:
  void connect_hosts(Deadline deadline) {
    MPI_Comm leaders = MPI_COMM_NULL;
    collectives::check_mpi(MPI_Comm_split(MPI_COMM_WORLD, layout_.leads() ? 0 : MPI_UNDEFINED,
                                          layout_.process, &leaders),
                           "MPI_Comm_split");
    if (!layout_.leads()) return;
    collectives::MpiMembers members;
    members.hosts = layout_.names;
    members.silence = options_.silence;
    for (const auto& host : layout_.hosts) {
      members.ranks.emplace_back();
      for (const int process : host) {
        for (const Rank rank : layout_.ranks_of(process)) members.ranks.back().push_back(rank);
      }
    }
    for (int index = 0; index < static_cast<int>(layout_.neighbours().size()); ++index) {
      for (int i = 0; i < layout_.local_size; ++i) {
        members.activities.push_back(shared_ ? shared_->activity(index, i) : activities_[i]);
      }
    }
    if (shared_) {
      members.host_failure = [shared = shared_] {
        for (int channel = 0; channel < kChannels; ++channel) {
          std::string failure = shared->failure(channel);
          if (!failure.empty()) return failure;
        }
        return std::string();
      };
    }
    link_ = collectives::MpiLink::create(leaders, std::move(members), deadline);
    for (auto& channel : outside_) channel = link_->channel(deadline);
  }

  // One member a process.
  std::unique_ptr<collectives::Collectives> between(GroupChannel channel) {
    const bool one_a_host = std::all_of(layout_.hosts.begin(), layout_.hosts.end(),
                                        [](const auto& host) { return host.size() == 1; });
    if (layout_.hosts.size() > 1 && one_a_host) return std::move(outside_[channel]);
    std::unique_ptr<collectives::Collectives> inside =
        shared_ ? shared_->channel(channel) : lone_group(layout_);
    if (layout_.hosts.size() == 1) return inside;
    return collectives::make_hierarchical(std::move(inside), std::move(outside_[channel]),
                                          layout_.hosts, layout_.process);
  }

  JobOptions options_;
  bool ours_ = false;  // MPI was initialised here
  ProcessPlan layout_;
  FailureFlag failed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<collectives::ProcessShared>
      shared_;  // null where this process is alone on its host
  std::vector<std::shared_ptr<Activity>> activities_;             // of the ranks that live here
  std::shared_ptr<collectives::MpiLink> link_;                    // on leaders of several hosts
  std::unique_ptr<collectives::Collectives> outside_[kChannels];  // the same; taken by between()
  std::unique_ptr<collectives::Collectives> main_;
  std::unique_ptr<transport::Transport> messages_;  // between processes, until join() takes it
};

}  // namespace

std::unique_ptr<Job> make_mpi_job(const JobOptions& options, int processes_per_host) {
  return std::make_unique<MpiJob>(options, processes_per_host);
}

std::unique_ptr<Job> make_mpi_job(const JobOptions& options) { return make_mpi_job(options, 0); }

void plain_mpi_all_reduce(std::span<float> values) {
  collectives::check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                                       MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                         "MPI_Allreduce");
}

void end_if_mpi_is_unfinished(int status) {
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun == 0 || ended != 0) return;
  std::fflush(stdout);
  std::fflush(stderr);
  _exit(status);
}

}  // namespace cohort::launch
