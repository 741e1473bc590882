#include "launch/lone_job.h"

#include <utility>

#include "collectives/shared_memory.h"

namespace cohort {
namespace {

class LoneJob final : public Job {
 public:
  LoneJob(Rank rank, int size, int host_size)
      : rank_(rank),
        size_(size),
        host_size_(host_size),
        alone_(std::move(make_shared_memory_group(1).front())) {}

  int processes() const override { return 1; }
  int process() const override { return 0; }
  int size() const override { return size_; }
  Rank first_rank() const override { return rank_; }
  int local_size() const override { return 1; }
  int host_size() const override { return host_size_; }
  Collectives& between_processes() override { return *alone_; }

  std::vector<Membership> join() override {
    std::vector<Membership> members(1);
    members.front().rank = rank_;
    members.front().size = size_;
    members.front().host_size = host_size_;
    return members;
  }

  void skip_farewell() override {}

 private:
  Rank rank_;
  int size_;
  int host_size_;
  std::unique_ptr<Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_lone_job(Rank rank, int size, int host_size) {
  return std::make_unique<LoneJob>(rank, size, host_size);
}

}  // namespace cohort
