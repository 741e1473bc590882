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

namespace cohort {

class TinyModel final : public Model {
 public:
  explicit TinyModel(std::uint64_t seed = 1)
      : Model(at::detail::createCPUGenerator(seed)),
        conv_(Scope(store()) / "conv", 2, 3, 3, {.padding = 1, .bias = false}),
        norm_(Scope(store()) / "norm", 3),
        unused_(Scope(store()) / "unused", 4, 4),
        head_(Scope(store()) / "head", 3 * 4 * 4, 5) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return head_(at::relu(norm_(conv_(inputs))).flatten(1));
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
  Linear unused_;
  Linear head_;
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

inline at::Tensor tiny_loss(Model& model, const TinyBatch& batch) {
  return at::cross_entropy_loss(model.forward(batch.inputs), batch.labels);
}

}  // namespace cohort
