#include "engine/carried_state.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "collectives/chunks.h"
#include "core/error.h"

namespace cohort::engine {
namespace {

// The number of dimensions, the sizes, the values. Nothing at all for an undefined tensor.
std::string to_bytes(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const std::int64_t dimensions = flat.dim();
  std::string bytes(reinterpret_cast<const char*>(&dimensions), sizeof dimensions);
  for (const std::int64_t size : flat.sizes()) {
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  }
  bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  return bytes;
}

at::Tensor from_bytes(const std::string& bytes) {
  if (bytes.empty()) return {};
  constexpr std::int64_t kMaxDimensions = 8;
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  constexpr std::size_t kNumber = sizeof(std::int64_t);
  const auto fail = [] { throw PeerError("a worker sent a damaged state of its model"); };
  const auto number = [&](std::size_t place) {
    std::int64_t value = -1;
    if ((place + 1) * kNumber <= bytes.size()) {
      std::memcpy(&value, bytes.data() + place * kNumber, kNumber);
    }
    return value;
  };
  const std::int64_t dimensions = number(0);
  if (dimensions < 0 || dimensions > kMaxDimensions) fail();
  std::vector<std::int64_t> sizes;
  std::int64_t numel = 1;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    sizes.push_back(number(static_cast<std::size_t>(i) + 1));
    if (sizes.back() < 1 || sizes.back() > kLargest / numel) fail();
    numel *= sizes.back();
  }
  const std::size_t begin = static_cast<std::size_t>(dimensions + 1) * kNumber;
  if (bytes.size() != begin + static_cast<std::size_t>(numel) * sizeof(float)) fail();
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(at::kFloat));
  std::memcpy(tensor.data_ptr(), bytes.data() + begin, bytes.size() - begin);
  return tensor;
}

}  // namespace

at::Tensor gather_carried(const models::Model& model, const WorkerGroup& group) {
  const at::Tensor own = model.carried();
  std::vector<at::Tensor> all;
  for (const std::string& bytes : group.gather(to_bytes(own))) {
    all.push_back(from_bytes(bytes));
    // Of one that is lost, or has just come back: all begin anew.
    if (!own.defined() || !all.back().defined()) return {};
    if (all.back().dim() != own.dim()) {
      throw PeerError("a worker's model carries another kind of state");
    }
  }
  return at::cat(all, models::Model::kCarriedRows);
}

void share_carried(const at::Tensor& of_all, models::Model& model, const WorkerGroup& group) {
  const at::Tensor state =
      group.alone() ? of_all
                    : from_bytes(group.gather(group.is_first() ? to_bytes(of_all) : "").front());
  if (!state.defined()) return model.set_carried({});
  const Range rows =
      collectives::chunk_of(state.size(models::Model::kCarriedRows), group.size(), group.rank());
  model.set_carried(state.narrow(models::Model::kCarriedRows, rows.begin, rows.size).clone());
}

}  // namespace cohort::engine
