// Collectives of ranks whose vectors lie in the memory of GPUs: what they have in common.
//
// The ranks meet in a group on their hosts, `host`: there they show each other what they bring, and
// there goes all that is about host memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collectives.h"
#include "core/error.h"

namespace cohort::collectives {

class DeviceCollectives : public Collectives {
 public:
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    return host_->all_gather(own, deadline);
  }
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    host_->broadcast(bytes, root, deadline);
  }
  void barrier(Deadline deadline) override { host_->barrier(deadline); }
  void leave(const std::string& reason) override { host_->leave(reason); }

  Traffic traffic() const override {
    Traffic traffic = host_->traffic();
    traffic.sent += moved_;
    traffic.received += moved_;
    return traffic;
  }

 protected:
  explicit DeviceCollectives(std::unique_ptr<Collectives> host)
      : Collectives(host->rank(), host->size()), host_(std::move(host)) {}

  Collectives& host() { return *host_; }

  // Shows the others where this rank's vector is and returns where theirs are, by rank. Throws
  // PeerError when one has another length.
  std::vector<float*> meet(std::span<float> values, Deadline deadline) {
    const Shown own{values.data(), values.size()};
    std::vector<float*> all;
    for (const Bytes& bytes : host_->all_gather(std::as_bytes(std::span(&own, 1)), deadline)) {
      Shown shown;
      if (bytes.size() == sizeof shown) std::memcpy(&shown, bytes.data(), sizeof shown);
      if (shown.numel != own.numel) {
        throw PeerError("rank " + std::to_string(all.size()) + " brought " +
                        std::to_string(shown.numel) + " floats to all_reduce, rank " +
                        std::to_string(rank()) + " brought " + std::to_string(own.numel));
      }
      all.push_back(shown.values);
    }
    return all;
  }

  // Counts bytes that went between GPUs' memories, each way.
  void count(std::uint64_t bytes) { moved_ += bytes; }

 private:
  struct Shown {
    float* values = nullptr;
    std::size_t numel = 0;
  };

  std::unique_ptr<Collectives> host_;
  std::atomic<std::uint64_t> moved_ = 0;
};

}  // namespace cohort::collectives
