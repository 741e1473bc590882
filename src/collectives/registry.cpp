#include "collectives/registry.h"

#include <utility>

#include "collectives/over_transport.h"
#include "collectives/shared_memory.h"
#include "transport/in_process.h"

namespace cohort {
namespace {

std::unique_ptr<CollectivesGroup> make_in_process(int size) {
  return std::make_unique<CollectivesGroup>(CollectivesGroup{make_shared_memory_group(size)});
}

std::unique_ptr<CollectivesGroup> make_over_transport(int size) {
  auto group = std::make_unique<CollectivesGroup>();
  for (auto& transport : make_in_process_group(size)) {
    group->members.push_back(std::make_unique<OverTransport>(std::move(transport)));
  }
  return group;
}

}  // namespace

const CollectivesRegistry& collectives() {
  static const CollectivesRegistry table(
      "collectives", {
                         {"in-process", "threads that read each other's memory", make_in_process},
                         {"over-transport", "rings and trees of messages; here between threads",
                          make_over_transport},
                     });
  return table;
}

}  // namespace cohort
