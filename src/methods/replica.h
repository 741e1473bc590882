// One rank's copy of the training state, as update methods see it: flat vectors over the whole
// model. Methods never see the model, its layers or the loss.
//
// All parameters live in one contiguous arena and all gradients in another, in the order backward
// produces them (last layer first); the model works on views. So a bucket of gradients is a range,
// nothing is packed, and the update is one pass over memory.
//
// A step, as the engine drives it:
//   begin_step(); for each pass { begin_pass(last); forward; backward; } finish_backward();
//   method.update(...) -> apply_gradients(lr)
// Used from one thread, except that the gradient listener is called by the thread that runs
// backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/types.h"
#include "methods/arena_update.h"
#include "methods/device_timer.h"
#include "methods/gradient_gather.h"
#include "methods/state_visitor.h"
#include "models/model.h"
#include "optimizers/optimizer.h"

namespace cohort::methods {

struct ReplicaOptions {
  std::string optimizer = "sgd";
  optimizers::OptimizerOptions optimizer_options = {};
  at::Device device = at::kCPU;
  bool channels_last = false;  // convolution weights are laid out with channels innermost
  // What the model computes in. Other than float32, its weights and biases are copies, but for
  // those of normalisation; the arenas stay float32.
  at::ScalarType precision = at::kFloat;
  double weight_decay = 0;
  bool decay_normalization = true;  // false: batch normalisation is spared
  double clip_norm = 0;             // longest gradient that is applied; 0: no limit
};

class Replica {
 public:
  // A tensor of the model and its place in the arenas.
  struct Segment {
    std::string name;
    Range range;
    std::int64_t padding;  // unused elements after it, always zero; none in main memory
    models::ParameterKind kind;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // of the view inside its range
  };

  using GradientListener = std::function<void(Range)>;

  // Moves the model's parameters and buffers to the device and into arenas. The model must outlive
  // the replica and must not be given another one.
  Replica(models::Model& model, const ReplicaOptions& options);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // 1-D float32, all parameters in arena order; on a device with padding between them, because its
  // kernels want aligned tensors. Methods may change the elements.
  const at::Tensor& parameters() const { return parameters_; }
  const at::Tensor& gradients() const { return gradients_; }
  // The optimizer's state vectors, aligned with parameters(): momentum first.
  const std::vector<at::Tensor>& slots() const { return slots_; }
  // The float buffers (batch-norm statistics) as one 1-D vector.
  const at::Tensor& statistics() const { return statistics_; }

  const std::vector<Segment>& segments() const { return segments_; }
  std::int64_t numel() const { return parameters_.numel(); }  // of an arena, padding included

  // Brings what the model computes with up to date with parameters(). Belongs before a forward pass
  // wherever the parameters may have changed; begin_step() does it.
  void refresh_copies();

  void begin_step();
  // The listener is told of each range whose gradient is complete, but only in the last pass. The
  // ranges of a step tile the arena: a segment's comes with its padding.
  void begin_pass(bool last);
  // Both of these, which whoever records the passes of a GPU calls one by one.
  void finish_backward() {
    collect_gradients();
    announce_gradients();
  }
  // Gradients that no pass produced (unused parameters) become zero; those that were left for the
  // end are collected.
  void collect_gradients();
  // Tells the listener of the ranges that it was not told of before.
  void announce_gradients();
  void set_gradient_listener(GradientListener listener) { listener_ = std::move(listener); }

  // One optimizer step along `scale` x gradients(), clipped if the options say so.
  void apply_gradients(double lr, double scale = 1);
  // From now on moves() has what the latest step subtracted from the parameters, unlike their
  // difference not rounded to the last bit of the parameters.
  void keep_moves();
  const at::Tensor& moves() const { return moves_; }
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }  // made elsewhere
  // What apply_gradients() took since the last call. Waits for a device.
  double take_update_seconds() { return updating_.take(); }

  // Parameters and buffers under their model names.
  void visit_model(StateVisitor& visitor);
  // What else a resumed run needs: optimizer state and counters.
  void visit_state(StateVisitor& visitor);

 private:
  class GradientHook;
  struct DecayGroup {
    Range range;
    double weight_decay;
  };

  void place_parameters(models::Model& model, const ReplicaOptions& options);
  void place_buffers(models::Model& model, const ReplicaOptions& options);
  void watch_gradients();
  void gradient_arrived(std::size_t index);
  void tell(std::size_t index);
  at::Tensor view(const at::Tensor& arena, const Segment& segment) const;
  double clipped(double scale) const;

  models::Model& model_;
  ReplicaOptions options_;
  ArenaUpdate update_;
  std::vector<Segment> segments_;
  std::vector<models::Parameter*> owners_;  // of the segments, in the same order
  std::vector<DecayGroup> decay_groups_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  at::Tensor statistics_;
  std::vector<at::Tensor> slots_;
  at::Tensor moves_;  // undefined until somebody wants them
  std::vector<at::Tensor> gradient_views_;
  std::vector<std::shared_ptr<void>> accumulators_;  // autograd's, kept alive for our hooks
  std::vector<char> written_;                        // in this step, by segment
  std::vector<char> told_;                           // the listener knows, likewise
  GradientListener listener_;
  bool last_pass_ = true;
  at::Tensor copies_;  // of parameters(), in the model's precision; undefined where that is float32
  GradientGather gather_;
  std::int64_t updates_ = 0;
  DeviceTimer updating_;
};

}  // namespace cohort::methods
