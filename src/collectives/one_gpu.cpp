#include "collectives/one_gpu.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "collectives/chunks.h"
#include "core/error.h"
#include "kernels/exchange.h"
#include "kernels/gossip.h"

namespace cohort {
namespace {

// What a rank shows the others.
struct DeviceVector {
  float* values = nullptr;
  std::size_t numel = 0;
};

class OneGpuCollectives final : public Collectives {
 public:
  OneGpuCollectives(std::unique_ptr<Collectives> host, int gpu)
      : Collectives(host->rank(), host->size()), host_(std::move(host)), sums_(gpu) {}

  void all_reduce(std::span<float> values, Deadline deadline) override {
    if (values.empty() || !sums_.holds(values.data())) return host_->all_reduce(values, deadline);
    try {
      meet(values, deadline);
      const Range own = chunk_of(values.size());
      sums_.sum(vectors_, own);
      // Nobody is missing, and the others may still be writing here: no deadline.
      host_->barrier(Deadline::max());
      const auto others = static_cast<std::uint64_t>(size() - 1);
      const auto chunk = static_cast<std::uint64_t>(own.size);
      moved_ += (chunk * others + values.size() - chunk) * sizeof(float);
    } catch (const std::exception& error) {
      host_->leave(error.what());
      throw;
    }
  }

  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    return host_->all_gather(own, deadline);
  }
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    host_->broadcast(bytes, root, deadline);
  }
  void barrier(Deadline deadline) override { host_->barrier(deadline); }
  void leave(const std::string& reason) override { host_->leave(reason); }

  // As much as through main memory: what is read of the others' vectors and of their sums.
  Traffic traffic() const override {
    Traffic traffic = host_->traffic();
    traffic.sent += moved_;
    traffic.received += moved_;
    return traffic;
  }

 private:
  void meet(std::span<float> values, Deadline deadline) {
    const DeviceVector own{values.data(), values.size()};
    const auto all = host_->all_gather(std::as_bytes(std::span(&own, 1)), deadline);
    vectors_.clear();
    for (const Bytes& shown : all) {
      DeviceVector vector;
      if (shown.size() == sizeof vector) std::memcpy(&vector, shown.data(), sizeof vector);
      if (vector.numel != own.numel) {
        throw PeerError("rank " + std::to_string(vectors_.size()) + " brought " +
                        std::to_string(vector.numel) + " floats to all_reduce, rank " +
                        std::to_string(rank()) + " brought " + std::to_string(own.numel));
      }
      vectors_.push_back(vector.values);
    }
  }

  // In whole fours, which the kernel takes at once.
  Range chunk_of(std::size_t numel) const {
    const auto all = static_cast<std::int64_t>(numel);
    const Range fours = cohort::chunk_of((all + 3) / 4, size(), rank());
    const std::int64_t begin = std::min(all, 4 * fours.begin);
    return {begin, std::min(all, 4 * fours.end()) - begin};
  }

  std::unique_ptr<Collectives> host_;
  kernels::RankSums sums_;
  std::vector<float*> vectors_;  // by rank; kept to save the allocation
  std::atomic<std::uint64_t> moved_ = 0;
};

}  // namespace

bool sum_on_gpu(std::vector<std::unique_ptr<Collectives>>& group, int gpu) {
  if (group.size() > kernels::RankSums::kMostVectors) return false;
  for (auto& member : group) {
    member = std::make_unique<OneGpuCollectives>(std::move(member), gpu);
  }
  return true;
}

std::shared_ptr<kernels::MessageBoard> make_message_board(int ranks) {
  return std::make_shared<kernels::MessageBoard>(ranks);
}

}  // namespace cohort
