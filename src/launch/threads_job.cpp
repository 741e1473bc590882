#include "launch/threads_job.h"

#include <algorithm>
#include <utility>

#include "collectives/shared_memory.h"
#include "launch/process_messages.h"
#include "transport/in_process.h"

namespace cohort {
namespace {

class ThreadsJob final : public Job {
 public:
  explicit ThreadsJob(const JobOptions& options)
      : size_(std::max(1, options.workers)),
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
    auto gradients = make_shared_memory_group(size_, activities);
    std::vector<Membership> members(static_cast<std::size_t>(size_));
    for (Rank rank = 0; rank < size_; ++rank) {
      Membership& member = members[static_cast<std::size_t>(rank)];
      member.rank = rank;
      member.size = size_;
      member.host_rank = rank;
      member.host_size = size_;
      member.control = std::move(control[static_cast<std::size_t>(rank)]);
      member.gradients = std::move(gradients[static_cast<std::size_t>(rank)]);
      member.activity = activities[static_cast<std::size_t>(rank)];
    }
    if (messages_) give_messages(members, make_in_process_group(size_));
    return members;
  }

  void skip_farewell() override {}

 private:
  int size_;
  bool messages_;
  std::unique_ptr<Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_threads_job(const JobOptions& options) {
  return std::make_unique<ThreadsJob>(options);
}

}  // namespace cohort
