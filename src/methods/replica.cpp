#include "methods/replica.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "core/aligned_vector.h"
#include "core/error.h"

namespace cohort::methods {
namespace {

// cuDNN's kernels load 16 bytes at once; a cache line keeps neighbours apart as well. In main
// memory no kernel asks for it, and arenas without gaps are exactly as long as the model.
std::int64_t alignment_on(at::Device device) { return device.is_cpu() ? 1 : 16; }

// Zeros. In main memory with large pages, through which every pass over an arena goes faster.
at::Tensor make_arena(std::int64_t size, at::Device device) {
  const at::TensorOptions flat = at::TensorOptions().dtype(at::kFloat).device(device);
  if (!device.is_cpu() || size == 0) return at::zeros({size}, flat);
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  void* memory = allocate_aligned(bytes);
  return at::from_blob(
             memory, {size}, [bytes](void* given) { release_aligned(given, bytes); }, flat)
      .zero_();
}

Range with_padding(const Replica::Segment& segment) {
  return {segment.range.begin, segment.range.size + segment.padding};
}

std::vector<std::int64_t> strides_for(at::IntArrayRef shape, bool channels_last) {
  std::vector<std::int64_t> strides(shape.size());
  if (channels_last && shape.size() == 4) {
    strides[1] = 1;
    strides[3] = shape[1];
    strides[2] = shape[1] * shape[3];
    strides[0] = shape[1] * shape[3] * shape[2];
    return strides;
  }
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace

// Runs when autograd has finished one parameter's gradient.
class Replica::GradientHook final : public torch::autograd::FunctionPostHook {
 public:
  GradientHook(Replica& replica, std::size_t index) : replica_(replica), index_(index) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    replica_.gradient_arrived(index_);
    return outputs;
  }

 private:
  Replica& replica_;
  std::size_t index_;
};

Replica::Replica(models::Model& model, const ReplicaOptions& options)
    : model_(model),
      options_(options),
      update_(options.optimizer, options.optimizer_options, options.device),
      gather_(options.device),
      updating_(options.device) {
  const c10::NoGradGuard no_grad;
  place_parameters(model, options);
  place_buffers(model, options);
  for (std::size_t i = 0; i < update_.slots().size(); ++i) {
    slots_.push_back(make_arena(parameters_.numel(), options.device));
  }
  watch_gradients();
}

Replica::~Replica() {
  // Autograd may keep an accumulator, and with it our hook, as long as the parameter lives.
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    owners_[i]->gradient.reset();
    owners_[i]->value = view(parameters_, segments_[i]).detach().set_requires_grad(true);
  }
}

void Replica::place_parameters(models::Model& model, const ReplicaOptions& options) {
  std::deque<models::Parameter>& all = model.store().parameters();
  const std::int64_t alignment = alignment_on(options.device);
  std::int64_t offset = 0;
  for (auto parameter = all.rbegin(); parameter != all.rend(); ++parameter) {
    const at::IntArrayRef shape = parameter->value.sizes();
    const Range range{offset, parameter->value.numel()};
    const std::int64_t padding = (alignment - range.size % alignment) % alignment;
    segments_.push_back({parameter->name, range, padding, parameter->kind, shape.vec(),
                         strides_for(shape, options.channels_last)});
    owners_.push_back(&*parameter);
    const bool spared =
        parameter->kind == models::ParameterKind::kNormalization && !options.decay_normalization;
    const double decay = spared ? 0 : options.weight_decay;
    if (!decay_groups_.empty() && decay_groups_.back().weight_decay == decay) {
      decay_groups_.back().range.size = range.end() - decay_groups_.back().range.begin;
    } else {
      decay_groups_.push_back({range, decay});
    }
    offset = range.end() + padding;
  }
  parameters_ = make_arena(offset, options.device);
  gradients_ = make_arena(offset, options.device);
  if (options.precision != at::kFloat) {
    copies_ = at::zeros({offset}, parameters_.options().dtype(options.precision));
  }
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    view(parameters_, segments_[i]).copy_(owners_[i]->value);
    const bool copied =
        copies_.defined() && segments_[i].kind != models::ParameterKind::kNormalization;
    owners_[i]->value =
        view(copied ? copies_ : parameters_, segments_[i]).detach().set_requires_grad(true);
    gradient_views_.push_back(view(gradients_, segments_[i]));
    owners_[i]->gradient = gradient_views_.back();
  }
  written_.assign(segments_.size(), 0);
  told_.assign(segments_.size(), 0);
  refresh_copies();
}

void Replica::place_buffers(models::Model& model, const ReplicaOptions& options) {
  std::int64_t size = 0;
  for (const models::Buffer& buffer : model.store().buffers()) {
    if (buffer.value.scalar_type() == at::kFloat) size += buffer.value.numel();
  }
  statistics_ = at::empty({size}, at::TensorOptions().dtype(at::kFloat).device(options.device));
  std::int64_t offset = 0;
  for (models::Buffer& buffer : model.store().buffers()) {
    if (buffer.value.scalar_type() != at::kFloat) {
      buffer.value = buffer.value.to(options.device);
      continue;
    }
    at::Tensor place =
        statistics_.narrow(0, offset, buffer.value.numel()).view(buffer.value.sizes());
    place.copy_(buffer.value);
    offset += buffer.value.numel();
    buffer.value = place;
  }
}

void Replica::watch_gradients() {
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(owners_[i]->value);
    accumulator->add_post_hook(std::make_unique<GradientHook>(*this, i));
    accumulators_.push_back(std::move(accumulator));
  }
}

at::Tensor Replica::view(const at::Tensor& arena, const Segment& segment) const {
  return arena.as_strided(segment.shape, segment.strides, segment.range.begin);
}

void Replica::refresh_copies() {
  const c10::NoGradGuard no_grad;
  if (copies_.defined()) copies_.copy_(parameters_);
}

void Replica::begin_step() {
  refresh_copies();
  std::fill(written_.begin(), written_.end(), 0);
  std::fill(told_.begin(), told_.end(), 0);
  for (models::Parameter* owner : owners_) owner->accumulate = false;
}

void Replica::begin_pass(bool last) {
  last_pass_ = last;
  gather_.collect(gradients_);  // of the pass before, to which this one adds
}

void Replica::gradient_arrived(std::size_t index) {
  // A layer that wrote its gradient in place (Linear) leaves none for autograd to collect and has
  // set `accumulate` itself.
  at::Tensor& collected = owners_[index]->value.mutable_grad();
  if (collected.defined()) {
    const c10::NoGradGuard no_grad;
    if (gather_.takes(collected, gradient_views_[index])) {
      gather_.add({collected, segments_[index].range, written_[index] != 0});
    } else if (written_[index] != 0) {
      gradient_views_[index].add_(collected);
    } else {
      gradient_views_[index].copy_(collected);
    }
    collected.reset();
    owners_[index]->accumulate = true;
  }
  if (!owners_[index]->accumulate) return;
  written_[index] = 1;
  if (last_pass_ && !gather_.late()) tell(index);
}

void Replica::tell(std::size_t index) {
  told_[index] = 1;
  if (listener_) listener_(with_padding(segments_[index]));
}

void Replica::collect_gradients() {
  gather_.collect(gradients_);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (written_[i] == 0) gradient_views_[i].zero_();
  }
}

void Replica::announce_gradients() {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (told_[i] == 0) tell(i);  // not by the last pass, which did not use it
  }
}

double Replica::clipped(double scale) const {
  if (options_.clip_norm <= 0) return scale;
  const double norm = scale * arena_norm(gradients_);
  return norm > options_.clip_norm ? scale * options_.clip_norm / norm : scale;
}

void Replica::apply_gradients(double lr, double scale) {
  const c10::NoGradGuard no_grad;
  updating_.begin();
  optimizers::UpdateScalars scalars{.lr = lr, .gradient_scale = clipped(scale), .step = updates_};
  for (const DecayGroup& group : decay_groups_) {
    scalars.weight_decay = group.weight_decay;
    update_({parameters_, gradients_, slots_, moves_}, group.range, scalars);
  }
  ++updates_;
  updating_.end();
}

void Replica::keep_moves() {
  if (!moves_.defined()) moves_ = make_arena(parameters_.numel(), options_.device);
}

void Replica::visit_model(StateVisitor& visitor) {
  // In the model's own order, which is the reverse of the arena's.
  for (std::size_t i = segments_.size(); i-- > 0;) {
    visitor.tensor(segments_[i].name, view(parameters_, segments_[i]));
  }
  for (models::Buffer& buffer : model_.store().buffers()) visitor.tensor(buffer.name, buffer.value);
}

void Replica::visit_state(StateVisitor& visitor) {
  visitor.number("updates", updates_);
  const std::vector<std::string> names = update_.slots();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    for (std::size_t i = segments_.size(); i-- > 0;) {
      visitor.tensor(names[slot] + "." + segments_[i].name, view(slots_[slot], segments_[i]));
    }
  }
}

}  // namespace cohort::methods
