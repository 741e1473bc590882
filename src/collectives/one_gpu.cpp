#include "collectives/one_gpu.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "collectives/chunks.h"
#include "collectives/device_collectives.h"
#include "kernels/exchange.h"
#include "kernels/gossip.h"

namespace cohort::collectives {
namespace {

class OneGpuCollectives final : public DeviceCollectives {
 public:
  OneGpuCollectives(std::unique_ptr<Collectives> host, int gpu)
      : DeviceCollectives(std::move(host)), sums_(gpu) {}

  void all_reduce(std::span<float> values, Deadline deadline) override {
    if (values.empty() || !sums_.holds(values.data())) return host().all_reduce(values, deadline);
    try {
      const std::vector<float*> vectors = meet(values, deadline);
      const Range own = chunk_of(values.size());
      sums_.sum(vectors, own);
      // Nobody is missing, and the others may still be writing here: no deadline.
      host().barrier(Deadline::max());
      const auto others = static_cast<std::uint64_t>(size() - 1);
      const auto chunk = static_cast<std::uint64_t>(own.size);
      // As much as through main memory: what is read of the others' vectors and of their sums.
      count((chunk * others + values.size() - chunk) * sizeof(float));
    } catch (const std::exception& error) {
      leave(error.what());
      throw;
    }
  }

 private:
  // In whole fours, which the kernel takes at once.
  Range chunk_of(std::size_t numel) const {
    const auto all = static_cast<std::int64_t>(numel);
    const Range fours = collectives::chunk_of((all + 3) / 4, size(), rank());
    const std::int64_t begin = std::min(all, 4 * fours.begin);
    return {begin, std::min(all, 4 * fours.end()) - begin};
  }

  kernels::RankSums sums_;
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

}  // namespace cohort::collectives
