#include "launch/process_ranks.h"

#include <utility>

#include "collectives/shared_memory.h"
#include "core/error.h"

namespace cohort::launch {
namespace {

class Noted final : public collectives::Collectives {
 public:
  Noted(std::unique_ptr<collectives::Collectives> inner, FailureFlag failed)
      : collectives::Collectives(inner->rank(), inner->size()),
        inner_(std::move(inner)),
        failed_(std::move(failed)) {}

  void all_reduce(std::span<float> values, Deadline deadline) override {
    noting([&] { inner_->all_reduce(values, deadline); });
  }
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    std::vector<Bytes> all;
    noting([&] { all = inner_->all_gather(own, deadline); });
    return all;
  }
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    noting([&] { inner_->broadcast(bytes, root, deadline); });
  }
  void barrier(Deadline deadline) override {
    noting([&] { inner_->barrier(deadline); });
  }
  void leave(const std::string& reason) override {
    failed_->store(true);
    inner_->leave(reason);
  }
  Traffic traffic() const override { return inner_->traffic(); }

 private:
  template <class Operation>
  void noting(Operation&& operation) {
    try {
      operation();
    } catch (...) {
      failed_->store(true);
      throw;
    }
  }

  std::unique_ptr<collectives::Collectives> inner_;
  FailureFlag failed_;
};

// One for each rank of this process.
std::vector<std::unique_ptr<collectives::Collectives>> members(
    const ProcessPlan& plan, const std::vector<std::shared_ptr<Activity>>& activities,
    const std::function<std::unique_ptr<collectives::Collectives>()>& between) {
  std::vector<std::unique_ptr<collectives::Collectives>> all;
  if (plan.local_size == 1) {
    all.push_back(between());
    return all;
  }
  auto threads = collectives::make_shared_memory_group(
      plan.local_size, collectives::MemberNames{plan.ranks_of(plan.process), activities});
  if (plan.processes == 1) return threads;
  collectives::GroupTable table;
  for (int process = 0; process < plan.processes; ++process) {
    table.push_back(plan.ranks_of(process));
  }
  const std::shared_ptr<collectives::Collectives> outer = between();
  for (int i = 0; i < plan.local_size; ++i) {
    all.push_back(
        collectives::make_hierarchical(std::move(threads[i]), outer, table, plan.first_rank() + i));
  }
  return all;
}

}  // namespace

std::vector<Rank> ProcessPlan::ranks_of(int some_process) const {
  std::vector<Rank> ranks;
  for (int i = 0; i < local_size; ++i) ranks.push_back(some_process * local_size + i);
  return ranks;
}

collectives::ProcessGroup ProcessPlan::host_group(std::chrono::milliseconds silence) const {
  collectives::ProcessGroup group;
  for (const int neighbour : neighbours()) group.ranks.push_back(ranks_of(neighbour));
  group.channels = kChannels;
  group.silence = silence;
  return group;
}

JobShape shape_of(const ProcessPlan& plan) {
  return {.processes = plan.processes,
          .process = plan.process,
          .size = plan.size(),
          .first_rank = plan.first_rank(),
          .local_size = plan.local_size,
          .host_size = plan.host_size()};
}

int ranks_per_process(int workers, int processes) {
  if (workers == 0) return 1;
  if (workers < processes || workers % processes != 0) {
    throw ConfigError("--workers " + std::to_string(workers) + " cannot be shared out evenly to " +
                      std::to_string(processes) + " processes; use a multiple of " +
                      std::to_string(processes) + ", or start another number of processes");
  }
  return workers / processes;
}

std::unique_ptr<collectives::Collectives> lone_group(const ProcessPlan& plan) {
  return std::move(
      collectives::make_shared_memory_group(1, collectives::MemberNames{{plan.first_rank()}, {}})
          .front());
}

std::unique_ptr<collectives::Collectives> note_failures(
    std::unique_ptr<collectives::Collectives> collectives, FailureFlag failed) {
  return std::make_unique<Noted>(std::move(collectives), std::move(failed));
}

std::vector<std::shared_ptr<Activity>> activities_of(
    const ProcessPlan& plan, const std::shared_ptr<collectives::ProcessShared>& shared) {
  std::vector<std::shared_ptr<Activity>> activities;
  for (int i = 0; i < plan.local_size; ++i) {
    activities.push_back(shared ? shared->activity(plan.host_index, i)
                                : std::make_shared<Activity>());
  }
  return activities;
}

std::vector<collectives::Membership> members_of(
    const ProcessPlan& plan, const std::vector<std::shared_ptr<Activity>>& activities,
    std::vector<std::unique_ptr<collectives::Collectives>> control,
    std::vector<std::unique_ptr<collectives::Collectives>> gradients) {
  std::vector<collectives::Membership> all(plan.local_size);
  for (int i = 0; i < plan.local_size; ++i) {
    collectives::Membership& member = all[i];
    member.rank = plan.first_rank() + i;
    member.size = plan.size();
    member.host_rank = plan.host_index * plan.local_size + i;
    member.host_size = plan.host_size();
    member.control = std::move(control[i]);
    member.gradients = std::move(gradients[i]);
    member.activity = activities[i];
  }
  return all;
}

std::vector<collectives::Membership> join_processes(
    const ProcessPlan& plan, const std::vector<std::shared_ptr<Activity>>& activities,
    const std::function<std::unique_ptr<collectives::Collectives>(GroupChannel)>& between,
    const FailureFlag& failed) {
  const auto noted = [&](GroupChannel channel) {
    auto all = members(plan, activities, [&] { return between(channel); });
    for (auto& member : all) member = note_failures(std::move(member), failed);
    return all;
  };
  auto control = noted(kControl);
  return members_of(plan, activities, std::move(control), noted(kGradients));
}

}  // namespace cohort::launch
