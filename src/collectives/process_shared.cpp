#include "collectives/process_shared.h"

#include "collectives/barrier.h"
#include "collectives/process_channel.h"
#include "collectives/process_layout.h"
#include "collectives/process_owner.h"
#include "collectives/shared_mapping.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

void check_group(const ProcessGroup& group, int own) {
  const int size = static_cast<int>(group.ranks.size());
  if (size < 1 || size > Barrier::kMaxSize) {
    throw ConfigError("a group of processes on one host has 1 to " +
                      std::to_string(Barrier::kMaxSize) + ", not " + std::to_string(size));
  }
  COHORT_CHECK(own >= 0 && own < size && group.channels > 0, "no such member or channel");
}

}  // namespace

std::unique_ptr<Collectives> SharedByProcesses::channel(int index) {
  COHORT_CHECK(index >= 0 && index < channels_, "no channel " + std::to_string(index));
  return std::make_unique<ProcessChannel>(shared_from_this(), index);
}

std::shared_ptr<ProcessShared> ProcessShared::create(const ProcessGroup& group, int own) {
  check_group(group, own);
  const std::size_t bytes = process_layout::Layout(group.ranks, group.channels).bytes();
  return std::make_shared<SharedByProcesses>(SharedMapping::create(bytes), group, own);
}

std::shared_ptr<ProcessShared> ProcessShared::open(const std::string& name,
                                                   const ProcessGroup& group, int own) {
  check_group(group, own);
  const std::size_t bytes = process_layout::Layout(group.ranks, group.channels).bytes();
  return std::make_shared<SharedByProcesses>(SharedMapping::open(name, bytes), group, own);
}

}  // namespace cohort::collectives
