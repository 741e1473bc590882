// A network that turns a batch of inputs into a batch of outputs (logits).
//
// It knows nothing of the loss, the data set or the other ranks. One object per replica, used from
// one thread. Its tensors are reached through store().
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "models/parameter_store.h"

namespace cohort::models {

// A second classifier on an inner layer, whose loss is added with this weight while training.
struct AuxiliaryOutput {
  at::Tensor logits;
  double weight = 0;
};

class Model {
 public:
  explicit Model(at::Generator generator) : store_(std::move(generator)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // `inputs` is N x C x H x W, in either memory format. Returns N x classes. Of text, inputs are
  // the numbers of words, N x 1 x 1 x words, and there is a row for each word: those of the first
  // sample, then those of the second, ...
  virtual at::Tensor forward(const at::Tensor& inputs) = 0;

  // What a recurrent model remembers of the text that the last batch ended with, without its
  // gradients; N is dimension kCarriedRows of it. Undefined: nothing, as at the beginning, and
  // always for other models. forward() goes on from it and replaces it, so a batch's rows must
  // continue those of the batch before.
  static constexpr std::int64_t kCarriedRows = 2;
  virtual at::Tensor carried() const { return {}; }
  virtual void set_carried(const at::Tensor&) {}

  // Of the last forward pass in training mode. Most models have none.
  virtual std::vector<AuxiliaryOutput> auxiliary() const { return {}; }

  ParameterStore& store() { return store_; }
  const ParameterStore& store() const { return store_; }

 private:
  ParameterStore store_;
};

}  // namespace cohort::models
