#include "collectives/registry.h"

#include <utility>

#include "collectives/hierarchical.h"
#include "collectives/over_transport.h"
#include "collectives/process_shared.h"
#include "collectives/shared_memory.h"
#include "core/error.h"
#include "transport/in_process.h"

namespace cohort::collectives {
namespace {

std::unique_ptr<CollectivesGroup> make_in_process(int size) {
  return std::make_unique<CollectivesGroup>(CollectivesGroup{make_shared_memory_group(size)});
}

std::unique_ptr<CollectivesGroup> make_process_shared(int size) {
  if (size < 1) throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  ProcessGroup description;
  for (Rank rank = 0; rank < size; ++rank) description.ranks.push_back({rank});
  const auto first = ProcessShared::create(description, 0);
  auto group = std::make_unique<CollectivesGroup>();
  group->members.push_back(first->channel(0));
  for (Rank rank = 1; rank < size; ++rank) {
    const auto shared = ProcessShared::open(first->name(), description, rank);
    group->members.push_back(shared->channel(0));
  }
  first->wait_for_all(deadline_in(std::chrono::seconds(10)));
  return group;
}

std::unique_ptr<CollectivesGroup> make_over_transport(int size) {
  auto group = std::make_unique<CollectivesGroup>();
  for (auto& transport : transport::make_in_process_group(size)) {
    group->members.push_back(std::make_unique<OverTransport>(std::move(transport)));
  }
  return group;
}

// Ranks dealt out to two groups like cards, so that neither is a row of neighbours.
std::unique_ptr<CollectivesGroup> make_two_level(int size) {
  if (size < 1) throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  const int groups = size > 1 ? 2 : 1;
  GroupTable table(groups);
  for (Rank rank = 0; rank < size; ++rank) table[rank % groups].push_back(rank);
  MemberNames leaders;
  for (const auto& members : table) leaders.ranks.push_back(members.front());
  auto outer = make_shared_memory_group(groups, leaders);
  auto group = std::make_unique<CollectivesGroup>();
  group->members.resize(size);
  for (int i = 0; i < groups; ++i) {
    const std::shared_ptr<Collectives> between = std::move(outer[i]);
    auto inner =
        make_shared_memory_group(static_cast<int>(table[i].size()), MemberNames{table[i], {}});
    for (std::size_t j = 0; j < inner.size(); ++j) {
      const Rank rank = table[i][j];
      group->members[rank] = make_hierarchical(std::move(inner[j]), between, table, rank);
    }
  }
  return group;
}

}  // namespace

const CollectivesRegistry& collectives() {
  static const CollectivesRegistry table(
      "collectives",
      {
          {"in-process", "threads that read each other's memory", make_in_process},
          {"process-shared", "processes through memory they share; here between threads",
           make_process_shared},
          {"over-transport", "rings and trees of messages; here between threads",
           make_over_transport},
          {"two-level", "groups of groups; here two of threads", make_two_level},
      });
  return table;
}

}  // namespace cohort::collectives
