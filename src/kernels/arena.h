// Passes over a replica's flat arenas on an NVIDIA GPU: the optimizer's step, and the collection of
// gradients. All calls only queue work on the stream.
//
// The steps round as src/optimizers does, so a GPU and a CPU make the same bits of the same
// gradients. Each reads and writes every vector once.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/element.h"

struct CUstream_st;  // what cudaStream_t points to

namespace cohort::kernels {

// All as long, and aligned to 16 bytes.
struct UpdateVectors {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  float* first = nullptr;   // the optimizer's state; null where it has none
  float* second = nullptr;  // likewise
  float* moves = nullptr;   // what is subtracted is put there; may be null
  std::int64_t size = 0;
};

struct SgdFactors {
  float scale, decay, mu, lr;
  bool nesterov;
};
void sgd_step(const UpdateVectors& vectors, const SgdFactors& factors, CUstream_st* stream);

struct AdamFactors {
  float scale, decay, keep, lost, beta1, beta2, step_size, root_correction, epsilon;
};
void adam_step(const UpdateVectors& vectors, const AdamFactors& factors, CUstream_st* stream);

// A tensor's gradient and where it belongs. `from` may be null: zeros.
struct GradientPart {
  const void* from = nullptr;
  std::int64_t to = 0;  // element of the arena
  std::int64_t size = 0;
  bool add = false;  // to what is there
};
void gather_gradients(std::span<const GradientPart> parts, Element element, float* arena,
                      CUstream_st* stream);

}  // namespace cohort::kernels
