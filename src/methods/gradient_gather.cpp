#include "methods/gradient_gather.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>

#include "kernels/arena.h"

namespace cohort::methods {
namespace {

constexpr std::uintptr_t kAlignment = 16;

// Whether elements lie in memory in the same order, whatever the strides of dimensions of size 1.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != 1 && a.stride(i) != b.stride(i)) return false;
  }
  return a.is_non_overlapping_and_dense();
}

}  // namespace

GradientGather::GradientGather(at::Device device) : late_(device.is_cuda()) {}

bool GradientGather::takes(const at::Tensor& gradient, const at::Tensor& place) const {
  return late_ && gradient.numel() > 0 &&
         (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kBFloat16) &&
         same_layout(gradient, place) &&
         reinterpret_cast<std::uintptr_t>(gradient.data_ptr()) % kAlignment == 0;
}

void GradientGather::collect(const at::Tensor& arena) {
  if (parts_.empty()) return;
  auto* const stream = c10::cuda::getCurrentCUDAStream(arena.device().index()).stream();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<kernels::GradientPart> parts;
    for (const Part& part : parts_) {
      if (part.gradient.scalar_type() != type) continue;
      parts.push_back({part.gradient.data_ptr(), part.range.begin, part.range.size, part.add});
    }
    const auto element =
        type == at::kFloat ? kernels::Element::kFloat : kernels::Element::kBFloat16;
    kernels::gather_gradients(parts, element, arena.data_ptr<float>(), stream);
  }
  parts_.clear();
}

}  // namespace cohort::methods
