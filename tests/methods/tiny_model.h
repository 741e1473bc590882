// A network small enough to reason about, with one parameter of each kind.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>

#include "models/layers.h"
#include "models/model.h"

namespace cohort::methods {

class TinyModel final : public models::Model {
 public:
  explicit TinyModel(std::uint64_t seed = 1)
      : models::Model(at::detail::createCPUGenerator(seed)),
        conv_(models::Scope(store()) / "conv", 2, 3, 3, {.padding = 1, .bias = false}),
        norm_(models::Scope(store()) / "norm", 3),
        unused_(models::Scope(store()) / "unused", 4, 4),
        head_(models::Scope(store()) / "head", 3 * 4 * 4, 5) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return head_(at::relu(norm_(conv_(inputs))).flatten(1));
  }

 private:
  models::Conv2d conv_;
  models::BatchNorm2d norm_;
  models::Linear unused_;
  models::Linear head_;
};

struct TinyBatch {
  at::Tensor inputs;
  at::Tensor labels;
};

inline TinyBatch tiny_batch(std::uint64_t seed, std::int64_t samples = 6) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return {at::empty({samples, 2, 4, 4}).normal_(0, 1, generator),
          at::empty({samples}, at::kLong).random_(0, 5, generator)};
}

inline at::Tensor tiny_loss(models::Model& model, const TinyBatch& batch) {
  return at::cross_entropy_loss(model.forward(batch.inputs), batch.labels);
}

}  // namespace cohort::methods
