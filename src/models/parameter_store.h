// The parameters and buffers of one model, by name.
//
// Layers keep pointers to their Parameter and read `value` at every forward pass, so that a
// Replica can move all values into one contiguous arena behind their back. Not thread-safe: one
// model belongs to one thread.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace cohort::models {

enum class ParameterKind {
  kWeight,  // of a convolution, linear layer or embedding
  kBias,
  kNormalization,  // scale and shift of batch normalisation: often spared from weight decay
};

struct Parameter {
  std::string name;  // as torchvision spells it: "layer1.0.conv1.weight"
  at::Tensor value;  // a leaf that requires gradients
  ParameterKind kind = ParameterKind::kWeight;

  // Where a layer that can compute its gradient in place puts it (see layers.h, Linear): undefined
  // until a Replica provides it. `accumulate` says whether to add to what is there; the Replica
  // clears it when a step begins, and whoever writes the gradient sets it.
  at::Tensor gradient;
  bool accumulate = false;
};

struct Buffer {
  std::string name;
  at::Tensor value;  // moved or replaced only by the Replica
};

// Fills a freshly allocated tensor in place, drawing from the generator.
using Initializer = std::function<void(at::Tensor&, at::Generator&)>;

// Replaces a small contiguous float tensor by its element-wise sum over all ranks, in place. All
// ranks call it equally often, in the same order, with the same sizes.
using StatisticsSum = std::function<void(at::Tensor&)>;

class ParameterStore {
 public:
  // Initial values are drawn from `generator`, in the order of the calls below, on its device.
  // With an undefined generator the values are allocated but not filled: enough to count them or
  // to load them from a file, and it costs neither time nor memory.
  explicit ParameterStore(at::Generator generator);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Addresses stay valid for the store's lifetime. Names must be new.
  Parameter* add_parameter(std::string name, at::IntArrayRef shape, ParameterKind kind,
                           const Initializer& initialize);
  Buffer* add_buffer(std::string name, at::Tensor value);

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  std::deque<Buffer>& buffers() { return buffers_; }
  const std::deque<Buffer>& buffers() const { return buffers_; }
  std::int64_t numel() const;  // of all parameters together

  // Batch normalisation and dropout ask this.
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

  // The stream dropout draws from. The engine seeds it anew before every step from (seed, rank,
  // step), so that a resumed run drops the same units.
  at::Generator& generator() { return generator_; }
  void set_generator(at::Generator generator) { generator_ = std::move(generator); }

  // With it, batch normalisation in training mode normalises over the batches of all ranks: each
  // layer calls it once in the forward pass and once in the backward pass, with a tensor on the
  // model's device and, there, from the thread that runs the backward pass on that device. Empty:
  // over this rank's batch alone. Not to be changed between the two passes.
  const StatisticsSum& statistics_sum() const { return statistics_sum_; }
  void set_statistics_sum(StatisticsSum sum) { statistics_sum_ = std::move(sum); }

 private:
  std::deque<Parameter> parameters_;
  std::deque<Buffer> buffers_;
  at::Generator generator_;
  StatisticsSum statistics_sum_;
  bool training_ = true;
};

// A place in the tree of names: `scope / "layer1" / "0"` is "layer1.0". Cheap to copy.
class Scope {
 public:
  explicit Scope(ParameterStore& store) : store_(&store) {}
  Scope operator/(std::string_view child) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }

  std::string name(std::string_view leaf) const;
  ParameterStore& store() const { return *store_; }

 private:
  ParameterStore* store_;
  std::string prefix_;
};

}  // namespace cohort::models
