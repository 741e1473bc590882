#include "transport/registry.h"

#include "transport/in_process.h"
#include "transport/rank_transport.h"
#include "transport/tcp.h"

namespace cohort::transport {
namespace {

std::unique_ptr<TransportGroup> make_in_process(int size) {
  return std::make_unique<TransportGroup>(TransportGroup{make_in_process_group(size)});
}

std::unique_ptr<TransportGroup> make_tcp(int size) {
  return std::make_unique<TransportGroup>(TransportGroup{make_tcp_group(size)});
}

// Processes of two ranks, and of one where the number is odd; each has one where there are two.
std::unique_ptr<TransportGroup> make_ranks_over_tcp(int size) {
  auto group = std::make_unique<TransportGroup>();
  std::vector<int> counts(size == 2 ? 2 : (size + 1) / 2, size == 2 ? 1 : 2);
  if (size % 2 == 1) counts.back() = 1;
  for (auto& between : make_tcp_group(static_cast<int>(counts.size()))) {
    for (auto& member : make_rank_group(std::move(between), counts)) {
      group->members.push_back(std::move(member));
    }
  }
  return group;
}

}  // namespace

const TransportRegistry& transports() {
  static const TransportRegistry table(
      "transport", {
                       {"in-process", "ranks are threads of one process", make_in_process},
                       {"tcp", "ranks are processes of any hosts", make_tcp},
                       {"tcp-ranks", "ranks are threads of such processes", make_ranks_over_tcp},
                   });
  return table;
}

}  // namespace cohort::transport
