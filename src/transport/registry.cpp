#include "transport/registry.h"

#include "transport/in_process.h"
#include "transport/tcp.h"

namespace cohort {
namespace {

std::unique_ptr<TransportGroup> make_in_process(int size) {
  return std::make_unique<TransportGroup>(TransportGroup{make_in_process_group(size)});
}

std::unique_ptr<TransportGroup> make_tcp(int size) {
  return std::make_unique<TransportGroup>(TransportGroup{make_tcp_group(size)});
}

}  // namespace

const TransportRegistry& transports() {
  static const TransportRegistry table(
      "transport", {
                       {"in-process", "ranks are threads of one process", make_in_process},
                       {"tcp", "ranks are processes of any hosts", make_tcp},
                   });
  return table;
}

}  // namespace cohort
