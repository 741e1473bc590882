// The layers that models are put together from.
//
// A layer is a small value: options and pointers into a ParameterStore, which must outlive it. It
// reads its parameters' current values at every call, so a Replica may move them. Though const,
// calls have effects on the store: in training mode batch normalisation updates its running
// statistics and dropout advances the generator. All layers work on every device and keep the
// memory format (channels last or not) of what they are given.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "models/fused_batch_norm.h"
#include "models/parameter_store.h"

namespace cohort::models {

struct Conv2dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Initializer weight_initializer = {};  // empty: torch's default, also for the bias
  Initializer bias_initializer = {};
};

// Square kernels. Parameters "weight" (out x in/groups x kernel x kernel) and "bias".
class Conv2d {
 public:
  Conv2d(const Scope& scope, std::int64_t in_channels, std::int64_t out_channels,
         std::int64_t kernel, const Conv2dOptions& options = {});
  at::Tensor operator()(const at::Tensor& input) const;
  // The same, then ReLU; one kernel where fuses_relu().
  at::Tensor relu(const at::Tensor& input) const;
  bool fuses_relu(const at::Tensor& input) const;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  std::int64_t stride_;
  std::int64_t padding_;
  std::int64_t dilation_;
  std::int64_t groups_;
};

// Parameters "weight" and "bias"; buffers "running_mean", "running_var" and "num_batches_tracked",
// as in torch. In training mode it normalises over the batches of all ranks where the store has a
// statistics_sum(), see synchronised_batch_norm.h.
class BatchNorm2d {
 public:
  BatchNorm2d(const Scope& scope, std::int64_t channels, double epsilon = 1e-5,
              double momentum = 0.1, double initial_weight = 1.0);
  at::Tensor operator()(const at::Tensor& input) const;
  // The same, then ReLU; and with a shortcut added in between. One pass over memory where
  // fused_batch_norm.h suits, so models prefer these to calls of their own.
  at::Tensor relu(const at::Tensor& input) const;
  at::Tensor add_relu(const at::Tensor& input, const at::Tensor& shortcut) const;

 private:
  FusedBatchNorm fused(bool relu) const;
  bool fuses(const at::Tensor& input) const;

  ParameterStore* store_;
  Parameter* weight_;
  Parameter* bias_;
  Buffer* running_mean_;
  Buffer* running_var_;
  Buffer* batches_tracked_;
  double epsilon_;
  double momentum_;
  mutable at::Tensor counters_;  // of the GPU kernels
};

struct LinearOptions {
  bool bias = true;
  Initializer weight_initializer = {};  // empty: torch's default
  Initializer bias_initializer = {};
};

// Parameters "weight" (out x in) and "bias". The input's last dimension has `in_features` entries.
//
// Where Parameter::gradient is defined, the backward pass writes the weight's and the bias's
// gradient there (or adds to what is there, as Parameter::accumulate says at that time) and leaves
// value.grad() alone; otherwise autograd's own way is taken. See linear_function.h.
class Linear {
 public:
  Linear(const Scope& scope, std::int64_t in_features, std::int64_t out_features,
         const LinearOptions& options = {});
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

// Zeroes each entry with `probability` and scales the others to keep the mean, drawing from the
// store's generator, which must be on the input's device. The input itself in evaluation mode.
at::Tensor dropout(ParameterStore& store, const at::Tensor& input, double probability);

// Overwrites its argument. Allowed wherever the operation before it does not need its own output
// for the backward pass: convolution, batch normalisation, linear, pooling and addition do not.
at::Tensor relu_in_place(const at::Tensor& input);
at::Tensor relu6_in_place(const at::Tensor& input);

struct PoolOptions {
  std::int64_t stride = 2;
  std::int64_t padding = 0;
  bool ceil_mode = false;  // keep a last, partly filled window
};
at::Tensor max_pool(const at::Tensor& input, std::int64_t kernel, const PoolOptions& options = {});
at::Tensor average_pool(const at::Tensor& input, std::int64_t kernel, std::int64_t stride);
at::Tensor adaptive_average_pool(const at::Tensor& input, std::int64_t height, std::int64_t width);

// N x C x H x W to N x C, the mean over each channel.
at::Tensor global_average(const at::Tensor& input);

// N x ... to N x everything else.
at::Tensor flatten_samples(const at::Tensor& input);

// Calls its parts one after another.
class Sequential {
 public:
  using Part = std::function<at::Tensor(const at::Tensor&)>;

  Sequential() = default;
  Sequential(std::initializer_list<Part> parts) : parts_(parts) {}
  void add(Part part) { parts_.push_back(std::move(part)); }
  bool empty() const { return parts_.empty(); }
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  std::vector<Part> parts_;
};

// Adds batch normalisation and ReLU as one part.
void add_norm_relu(Sequential& parts, const Scope& norm, std::int64_t channels);

}  // namespace cohort::models
