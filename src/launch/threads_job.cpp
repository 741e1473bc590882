#include "launch/threads_job.h"

#include <algorithm>
#include <utility>

#include "collectives/one_gpu.h"
#include "collectives/shared_memory.h"
#include "launch/process_messages.h"
#include "launch/process_ranks.h"
#include "transport/in_process.h"

namespace cohort::launch {
namespace {

class ThreadsJob final : public Job {
 public:
  explicit ThreadsJob(const JobOptions& options)
      : plan_{.local_size = std::max(1, options.workers)},
        messages_(options.messages),
        shared_gpu_(options.shared_gpu),
        alone_(lone_group(plan_)) {}

  JobShape shape() const override { return shape_of(plan_); }
  collectives::Collectives& between_processes() override { return *alone_; }

  std::vector<collectives::Membership> join() override {
    const auto activities = activities_of(plan_, nullptr);
    auto gradients = collectives::make_shared_memory_group(plan_.size(), activities);
    const bool on_gpu = shared_gpu_ && collectives::sum_on_gpu(gradients, *shared_gpu_);
    std::vector<collectives::Membership> members = members_of(
        plan_, activities, collectives::make_shared_memory_group(plan_.size(), activities),
        std::move(gradients));
    const auto board = on_gpu ? collectives::make_message_board(plan_.size()) : nullptr;
    for (collectives::Membership& member : members) {
      member.gradients_on_device = on_gpu;
      member.board = board;
    }
    if (messages_) give_messages(members, transport::make_in_process_group(plan_.size()));
    return members;
  }

  void skip_farewell() override {}

 private:
  ProcessPlan plan_;
  bool messages_;
  std::optional<int> shared_gpu_;
  std::unique_ptr<collectives::Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_threads_job(const JobOptions& options) {
  return std::make_unique<ThreadsJob>(options);
}

}  // namespace cohort::launch
