#include "launch/lone_job.h"

#include <utility>

#include "collectives/shared_memory.h"

namespace cohort::launch {
namespace {

class LoneJob final : public Job {
 public:
  explicit LoneJob(const JobShape& shape)
      : shape_(shape), alone_(std::move(collectives::make_shared_memory_group(1).front())) {}

  JobShape shape() const override { return shape_; }
  collectives::Collectives& between_processes() override { return *alone_; }

  std::vector<collectives::Membership> join() override {
    std::vector<collectives::Membership> members(1);
    members.front().rank = shape_.first_rank;
    members.front().size = shape_.size;
    members.front().host_size = shape_.host_size;
    return members;
  }

  void skip_farewell() override {}

 private:
  JobShape shape_;
  std::unique_ptr<collectives::Collectives> alone_;
};

}  // namespace

std::unique_ptr<Job> make_lone_job(Rank rank, int size, int host_size) {
  return std::make_unique<LoneJob>(
      JobShape{.size = size, .first_rank = rank, .host_size = host_size});
}

}  // namespace cohort::launch
