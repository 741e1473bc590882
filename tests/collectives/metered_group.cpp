#include "collectives/metered_group.h"

#include <utility>

#include "transport/in_process.h"

namespace cohort::collectives {

MeteredGroup::MeteredGroup(int size) {
  for (auto& member : transport::make_in_process_group(size)) {
    transports_.push_back(std::make_shared<transport::MeteredTransport>(std::move(member)));
  }
}

MeteredGroup::Count MeteredGroup::of(Rank rank) const {
  return static_cast<const transport::MeteredTransport&>(*transports_[rank]).traffic();
}

MeteredGroup::Count MeteredGroup::total() const {
  Count sum;
  for (Rank rank = 0; rank < static_cast<int>(transports_.size()); ++rank) {
    const Count part = of(rank);
    sum.bytes_sent += part.bytes_sent;
    sum.bytes_received += part.bytes_received;
    sum.messages_sent += part.messages_sent;
    sum.messages_received += part.messages_received;
  }
  return sum;
}

}  // namespace cohort::collectives
