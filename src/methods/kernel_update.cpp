#include "methods/kernel_update.h"

#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "kernels/arena.h"
#include "optimizers/adam.h"

namespace cohort::methods {
namespace {

float* data_of(const std::vector<at::Tensor>& slots, std::size_t slot) {
  return slot < slots.size() ? slots[slot].data_ptr<float>() : nullptr;
}

kernels::UpdateVectors vectors_of(const Arenas& arenas) {
  return {.parameters = arenas.parameters.data_ptr<float>(),
          .gradients = arenas.gradients.data_ptr<float>(),
          .first = data_of(arenas.slots, 0),
          .second = data_of(arenas.slots, 1),
          .moves = arenas.moves.defined() ? arenas.moves.data_ptr<float>() : nullptr,
          .size = arenas.parameters.numel()};
}

CUstream_st* stream_of(const Arenas& arenas) {
  return c10::cuda::getCurrentCUDAStream(arenas.parameters.device().index()).stream();
}

void fused_sgd(const Arenas& arenas, const optimizers::OptimizerOptions& options,
               const optimizers::UpdateScalars& scalars) {
  kernels::sgd_step(vectors_of(arenas),
                    {.scale = static_cast<float>(scalars.gradient_scale),
                     .decay = static_cast<float>(scalars.weight_decay),
                     .mu = static_cast<float>(options.momentum),
                     .lr = static_cast<float>(scalars.lr),
                     .nesterov = options.nesterov},
                    stream_of(arenas));
}

template <optimizers::Adam::Decay kDecay>
void fused_adam(const Arenas& arenas, const optimizers::OptimizerOptions& options,
                const optimizers::UpdateScalars& scalars) {
  const optimizers::AdamFactors f = optimizers::adam_factors(options, kDecay, scalars);
  kernels::adam_step(vectors_of(arenas),
                     {f.scale, f.decay, f.keep, f.lost, f.beta1, f.beta2, f.step_size,
                      f.root_correction, f.epsilon},
                     stream_of(arenas));
}

}  // namespace

TensorUpdate find_kernel_update(const std::string& name) {
  const std::pair<const char*, TensorUpdate> twins[] = {
      {"sgd", fused_sgd},
      {"adam", fused_adam<optimizers::Adam::Decay::kInGradient>},
      {"adamw", fused_adam<optimizers::Adam::Decay::kDecoupled>}};
  for (const auto& [known, update] : twins) {
    if (name == known) return update;
  }
  return nullptr;
}

}  // namespace cohort::methods
