#include "launch/nccl_job.h"

#include <utility>

#include "collectives/nccl.h"
#include "collectives/shared_memory.h"
#include "core/error.h"
#include "launch/process_messages.h"
#include "launch/process_ranks.h"
#include "transport/in_process.h"

namespace cohort::launch {
namespace {

int choose_size(int workers) {
  const int gpus = collectives::count_gpus();
  if (gpus == 0) {
    throw ConfigError(
        "--engine nccl needs an NVIDIA GPU and none can be used here; use --engine threads");
  }
  if (workers > gpus) {
    throw ConfigError("--workers " + std::to_string(workers) + " but " + std::to_string(gpus) +
                      (gpus == 1 ? " GPU" : " GPUs") +
                      ": --engine nccl gives each worker its own; use at most " +
                      std::to_string(gpus) + ", or --engine threads, where workers share them");
  }
  return workers > 0 ? workers : gpus;
}

class NcclJob final : public Job {
 public:
  explicit NcclJob(const JobOptions& options)
      : plan_{.local_size = choose_size(options.workers)},
        start_timeout_(options.start_timeout),
        messages_(options.messages),
        alone_(lone_group(plan_)) {}

  JobShape shape() const override { return shape_of(plan_); }
  collectives::Collectives& between_processes() override { return *alone_; }

  std::vector<collectives::Membership> join() override {
    const auto activities = activities_of(plan_, nullptr);
    std::vector<collectives::Membership> members = members_of(
        plan_, activities, collectives::make_shared_memory_group(plan_.size(), activities),
        collectives::make_nccl_group(
            collectives::make_shared_memory_group(plan_.size(), activities),
            deadline_in(start_timeout_)));
    for (collectives::Membership& member : members) member.gradients_on_device = true;
    if (messages_) give_messages(members, transport::make_in_process_group(plan_.size()));
    return members;
  }

  void skip_farewell() override {}

 private:
  ProcessPlan plan_;
  std::chrono::milliseconds start_timeout_;
  bool messages_;
  std::unique_ptr<collectives::Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_nccl_job(const JobOptions& options) {
  return std::make_unique<NcclJob>(options);
}

}  // namespace cohort::launch
