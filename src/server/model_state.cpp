#include "server/model_state.h"

#include <algorithm>
#include <new>

#include "core/error.h"
#include "core/simd.h"

namespace cohort::server {
namespace {

COHORT_SIMD_CLONES
void add(float* __restrict sum, const float* __restrict other, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += other[i];
}

COHORT_SIMD_CLONES
void compensate(float* __restrict g, const float* __restrict w, const float* __restrict then,
                std::size_t n, float lambda) {
  for (std::size_t i = 0; i < n; ++i) g[i] += lambda * g[i] * g[i] * (w[i] - then[i]);
}

}  // namespace

ModelState::ModelState(const JobSpec& spec)
    : spec_(spec),
      optimizer_(optimizers::optimizers().make(spec.optimizer, spec.optimizer_options)),
      schedule_(
          schedules::with_warmup(schedules::schedules().make(spec.schedule, spec.schedule_options),
                                 spec.warmup_from, spec.warmup_epochs)),
      decay_(spec.decay) {
  const auto size = static_cast<std::size_t>(spec.size);
  if (decay_.empty()) decay_.push_back({.range = {0, spec.size}, .weight_decay = 0});
  parameters_.resize(size);
  slots_.assign(optimizer_->slots().size(), AlignedVector<float>(size));
}

double ModelState::lr() const {
  return schedule_->at(static_cast<double>(version_) / spec_.updates_per_epoch);
}

optimizers::UpdateScalars ModelState::scalars(double scale) const {
  return {
      .lr = lr(), .weight_decay = 0, .gradient_scale = scale, .step = static_cast<Step>(version_)};
}

// The elements from `first` on, by as many gradients, of one weight decay after the other;
// place(begin, size) is where they are.
template <class Place>
void ModelState::update(std::span<const float> gradients, std::size_t first,
                        optimizers::UpdateScalars scalars, const Place& place) const {
  for (const DecayRange& decay : decay_) {
    const auto begin = std::max(first, static_cast<std::size_t>(decay.range.begin));
    const auto end =
        std::min(first + gradients.size(), static_cast<std::size_t>(decay.range.end()));
    if (begin >= end) continue;
    optimizers::UpdateBlock block = place(begin, end - begin);
    block.gradients = gradients.subspan(begin - first, end - begin);
    scalars.weight_decay = decay.weight_decay;
    optimizer_->update(block, scalars);
  }
}

void ModelState::queue_update(std::span<const float> gradients, double scale) {
  COHORT_CHECK(gradients.size() == parameters_.size(), "a gradient of the arena's size");
  const optimizers::UpdateScalars scale_and_rate = scalars(scale);
  ++version_;
  if (gradients.empty()) return;
  pending_.push_back(
      {.gradients = gradients, .scalars = scale_and_rate, .version = version_, .done = 0});
}

std::size_t ModelState::materialized(std::uint64_t version) const {
  std::size_t count = parameters_.size();
  for (const Pending& each : pending_) {
    if (each.version <= version) count = each.done;
  }
  return count;
}

void ModelState::materialize(std::uint64_t version, std::size_t count) {
  for (Pending& each : pending_) {
    if (each.version > version || each.done >= count) continue;
    const auto gradients = each.gradients.subspan(each.done, count - each.done);
    update(gradients, each.done, each.scalars, [&](std::size_t begin, std::size_t size) {
      return block_of(parameters_, slots_, begin, size);
    });
    each.done = count;
  }
  while (!pending_.empty() && pending_.front().done == parameters_.size()) pending_.pop_front();
}

std::optional<std::uint64_t> ModelState::waits_for(std::span<const float> gradients) const {
  std::optional<std::uint64_t> version;
  for (const Pending& each : pending_) {
    if (each.gradients.data() == gradients.data()) version = each.version;
  }
  return version;
}

std::vector<float> ModelState::preview() const {
  std::vector<float> parameters(parameters_.begin(), parameters_.end());
  std::vector<AlignedVector<float>> slots = slots_;
  for (const Pending& each : pending_) {
    update(each.gradients.subspan(each.done), each.done, each.scalars,
           [&](std::size_t begin, std::size_t size) {
             return block_of(parameters, slots, begin, size);
           });
  }
  return parameters;
}

optimizers::UpdateBlock ModelState::block_of(std::span<float> parameters,
                                             std::vector<AlignedVector<float>>& slots,
                                             std::size_t begin, std::size_t size) {
  optimizers::UpdateBlock block{
      .parameters = parameters.subspan(begin, size), .gradients = {}, .slots = {}};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    block.slots[i] = std::span(slots[i]).subspan(begin, size);
  }
  return block;
}

bool ModelState::begin_speculation(double scale) {
  COHORT_CHECK(pending_.empty(), "speculation on a model that is materialized");
  if (speculative_parameters_.empty()) {
    try {
      AlignedVector<float> parameters(parameters_.size());
      std::vector<AlignedVector<float>> slots;
      for (std::size_t i = 0; i < slots_.size(); ++i) slots.emplace_back(parameters_.size());
      speculative_parameters_.swap(parameters);
      speculative_slots_.swap(slots);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  speculating_ = {.gradients = {}, .scalars = scalars(scale)};
  return true;
}

void ModelState::extend_speculation(std::span<const float> gradients) {
  const auto copied = [](const AlignedVector<float>& from, AlignedVector<float>& to,
                         std::size_t begin, std::size_t size) {
    const auto place = std::span(to).subspan(begin, size);
    std::copy_n(from.data() + begin, size, place.data());
    return place;
  };
  const auto place = [&](std::size_t begin, std::size_t size) {
    optimizers::UpdateBlock block{
        .parameters = copied(parameters_, speculative_parameters_, begin, size),
        .gradients = {},
        .slots = {}};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      block.slots[i] = copied(slots_[i], speculative_slots_[i], begin, size);
    }
    return block;
  };
  // What was copied is still in the processor's cache when it is updated.
  constexpr std::size_t kAtOnce = 16384;
  while (!gradients.empty()) {
    const auto now = gradients.first(std::min(kAtOnce, gradients.size()));
    update(now, speculating_.done, speculating_.scalars, place);
    speculating_.done += now.size();
    gradients = gradients.subspan(now.size());
  }
}

std::vector<std::span<const float>> ModelState::second_copy() const {
  std::vector<std::span<const float>> memory = {speculative_parameters_};
  memory.insert(memory.end(), speculative_slots_.begin(), speculative_slots_.end());
  return memory;
}

void ModelState::adopt_speculation() {
  COHORT_CHECK(speculating_.done == parameters_.size(), "a speculative update that is whole");
  std::swap(parameters_, speculative_parameters_);
  std::swap(slots_, speculative_slots_);
  speculating_ = {};
  ++version_;
}

void add_to(std::span<float> sum, std::span<const float> other) {
  COHORT_CHECK(sum.size() == other.size(), "gradients of one arena");
  add(sum.data(), other.data(), sum.size());
}

void compensate_delay(std::span<float> gradients, std::span<const float> now,
                      std::span<const float> then, double lambda) {
  COHORT_CHECK(gradients.size() == now.size() && now.size() == then.size(), "one arena");
  compensate(gradients.data(), now.data(), then.data(), now.size(), static_cast<float>(lambda));
}

}  // namespace cohort::server
