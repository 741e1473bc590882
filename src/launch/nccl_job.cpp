#include "launch/nccl_job.h"

#include <utility>

#include "collectives/nccl.h"
#include "collectives/shared_memory.h"
#include "core/error.h"
#include "launch/process_messages.h"
#include "transport/in_process.h"

namespace cohort {
namespace {

int choose_size(int workers) {
  const int gpus = count_gpus();
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
      : size_(choose_size(options.workers)),
        start_timeout_(options.start_timeout),
        messages_(options.messages),
        alone_(std::move(make_shared_memory_group(1).front())) {}

  int processes() const override { return 1; }
  int process() const override { return 0; }
  int size() const override { return size_; }
  Rank first_rank() const override { return 0; }
  int local_size() const override { return size_; }
  int host_size() const override { return size_; }
  Collectives& between_processes() override { return *alone_; }

  std::vector<Membership> join() override {
    std::vector<std::shared_ptr<Activity>> activities;
    for (Rank rank = 0; rank < size_; ++rank) activities.push_back(std::make_shared<Activity>());
    auto control = make_shared_memory_group(size_, activities);
    auto gradients =
        make_nccl_group(make_shared_memory_group(size_, activities), deadline_in(start_timeout_));
    std::vector<Membership> members(static_cast<std::size_t>(size_));
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      Membership& member = members[rank];
      member.rank = static_cast<Rank>(rank);
      member.size = size_;
      member.host_rank = member.rank;
      member.host_size = size_;
      member.control = std::move(control[rank]);
      member.gradients = std::move(gradients[rank]);
      member.gradients_on_device = true;
      member.activity = activities[rank];
    }
    if (messages_) give_messages(members, make_in_process_group(size_));
    return members;
  }

  void skip_farewell() override {}

 private:
  int size_;
  std::chrono::milliseconds start_timeout_;
  bool messages_;
  std::unique_ptr<Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_nccl_job(const JobOptions& options) {
  return std::make_unique<NcclJob>(options);
}

}  // namespace cohort
