#include "topology/registry.h"

#include "topology/complete.h"
#include "topology/ring.h"

namespace cohort {
namespace {

template <class T>
std::unique_ptr<Topology> make(int size) {
  return std::make_unique<T>(size);
}

}  // namespace

const TopologyRegistry& topologies() {
  static const TopologyRegistry table("topology",
                                      {
                                          {"complete", "everybody with everybody", make<Complete>},
                                          {"ring", "each with its left and right", make<Ring>},
                                      });
  return table;
}

}  // namespace cohort
