#include "methods/arena_update.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "methods/kernel_update.h"
#include "optimizers/norm.h"

namespace cohort::methods {
namespace {

// Large enough to hide the cost of waking a thread, small enough to share out evenly.
constexpr std::int64_t kChunk = 1 << 16;

std::span<float> stretch(const at::Tensor& arena, std::int64_t begin, std::int64_t size) {
  return {arena.data_ptr<float>() + begin, static_cast<std::size_t>(size)};
}

}  // namespace

ArenaUpdate::ArenaUpdate(const std::string& optimizer, const optimizers::OptimizerOptions& options,
                         at::Device device)
    : optimizer_(optimizers::optimizers().make(optimizer, options)), options_(options) {
  if (device.is_cuda()) on_device_ = find_kernel_update(optimizer);
  if (!device.is_cpu() && on_device_ == nullptr) on_device_ = find_tensor_update(optimizer);
}

void ArenaUpdate::operator()(const Arenas& arenas, Range range,
                             const optimizers::UpdateScalars& scalars) const {
  if (on_device_ != nullptr) {
    const auto narrow = [&](const at::Tensor& arena) {
      return arena.narrow(0, range.begin, range.size);
    };
    Arenas part{narrow(arenas.parameters), narrow(arenas.gradients), {}};
    for (const at::Tensor& slot : arenas.slots) part.slots.push_back(narrow(slot));
    if (arenas.moves.defined()) part.moves = narrow(arenas.moves);
    on_device_(part, options_, scalars);
    return;
  }
  at::parallel_for(range.begin, range.end(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    optimizers::UpdateBlock block{.parameters = stretch(arenas.parameters, begin, end - begin),
                                  .gradients = stretch(arenas.gradients, begin, end - begin),
                                  .slots = {}};
    for (std::size_t i = 0; i < arenas.slots.size(); ++i) {
      block.slots[i] = stretch(arenas.slots[i], begin, end - begin);
    }
    if (arenas.moves.defined()) block.moves = stretch(arenas.moves, begin, end - begin);
    optimizer_->update(block, scalars);
  });
}

double arena_norm(const at::Tensor& arena) {
  if (!arena.is_cpu()) return arena.norm().item<double>();
  const std::int64_t chunks = (arena.numel() + kChunk - 1) / kChunk;
  std::vector<double> sums(static_cast<std::size_t>(chunks));
  at::parallel_for(0, chunks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t begin = chunk * kChunk;
      const std::int64_t size = std::min(kChunk, arena.numel() - begin);
      sums[static_cast<std::size_t>(chunk)] = optimizers::squared_norm(stretch(arena, begin, size));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace cohort::methods
