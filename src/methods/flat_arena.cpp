#include "methods/flat_arena.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cstring>

namespace cohort::methods {

FlatArena::FlatArena(const Replica& replica, const at::Tensor& arena, bool in_place)
    : replica_(replica), arena_(arena) {
  std::int64_t place = 0;
  for (const Replica::Segment& segment : replica.segments()) {
    tensors_.push_back({place, segment.range.size});
    place += segment.range.size;
  }
  if (in_place || (arena.is_cpu() && place == arena.numel())) {
    values_ = {arena.data_ptr<float>(), static_cast<std::size_t>(arena.numel())};
    return;
  }
  staged_ = at::empty(arena.sizes(), arena.options().device(at::kCPU));
  packed_.resize(static_cast<std::size_t>(place));
  values_ = packed_;
}

void FlatArena::from_device() {
  if (!staged_.defined()) return;
  staged_.copy_(arena_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::memcpy(packed_.data() + tensors_[i].begin,
                staged_.data_ptr<float>() + replica_.segments()[i].range.begin,
                static_cast<std::size_t>(tensors_[i].size) * sizeof(float));
  }
}

void FlatArena::to_device() {
  if (!staged_.defined()) return;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::memcpy(staged_.data_ptr<float>() + replica_.segments()[i].range.begin,
                packed_.data() + tensors_[i].begin,
                static_cast<std::size_t>(tensors_[i].size) * sizeof(float));
  }
  const c10::NoGradGuard no_grad;
  arena_.copy_(staged_);
}

}  // namespace cohort::methods
