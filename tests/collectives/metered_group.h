// A group of transports between threads that count what passes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/types.h"
#include "transport/transport.h"

namespace cohort {

class MeteredGroup {
 public:
  struct Count {
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t messages_sent = 0;
    std::uint64_t messages_received = 0;

    friend bool operator==(const Count&, const Count&) = default;
  };

  explicit MeteredGroup(int size);

  const std::vector<std::shared_ptr<Transport>>& transports() const { return transports_; }
  Count of(Rank rank) const;
  Count total() const;

 private:
  std::vector<std::shared_ptr<Transport>> transports_;  // by rank; all are MeteredTransport
};

}  // namespace cohort
