// A group of transports between threads that count what passes.
#pragma once

#include <memory>
#include <vector>

#include "core/types.h"
#include "transport/metered.h"
#include "transport/transport.h"

namespace cohort::collectives {

class MeteredGroup {
 public:
  using Count = transport::TransportTraffic;

  explicit MeteredGroup(int size);

  const std::vector<std::shared_ptr<transport::Transport>>& transports() const {
    return transports_;
  }
  Count of(Rank rank) const;
  Count total() const;

 private:
  std::vector<std::shared_ptr<transport::Transport>>
      transports_;  // by rank; all are MeteredTransport
};

}  // namespace cohort::collectives
