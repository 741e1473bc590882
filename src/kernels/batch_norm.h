// Batch normalisation in training mode on an NVIDIA GPU, fused with what follows it: the addition
// of a shortcut and ReLU.
//
// Tensors are N x C x H x W with the channels innermost, that is `rows` = N H W rows of `channels`
// elements, of float or bfloat16; statistics, scale and shift are float. All calls only queue work
// on the stream. The same input gives the same bits: no atomic addition of floats.
//
// Bytes that have to move, in tensors of rows x channels elements: forward 3 (4 with a shortcut),
// backward 5 (6 with a shortcut).
#pragma once

#include <cstdint>

#include "kernels/element.h"

struct CUstream_st;  // what cudaStream_t points to

namespace cohort::kernels {

struct BatchNormShape {
  std::int64_t rows = 0;
  int channels = 0;
  Element element = Element::kFloat;
};

// Whether the kernels below can do it: whole vectors of 16 bytes a row.
bool suits_batch_norm(const BatchNormShape& shape);

// How many of these a call needs as scratch space, which may hold anything.
std::int64_t batch_norm_scratch_floats(const BatchNormShape& shape);
// And as counters, which are zero before the first call and zero again after each.
std::int64_t batch_norm_counters(const BatchNormShape& shape);

// Of BatchNormForward::positive.
std::int64_t batch_norm_mask_bytes(const BatchNormShape& shape);

struct BatchNormScratch {
  float* floats = nullptr;
  unsigned* counters = nullptr;
};

struct BatchNormForward {
  const void* input = nullptr;
  const void* shortcut = nullptr;  // added before ReLU; may be null
  void* output = nullptr;          // may be the shortcut
  bool relu = false;
  // Where ReLU let elements through: batch_norm_mask_bytes(), for the backward pass. Kept with a
  // shortcut only; may be null.
  std::uint8_t* positive = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
  float momentum = 0;
  float* running_mean = nullptr;
  float* running_variance = nullptr;   // of the unbiased variance
  std::int64_t* batches = nullptr;     // counted up by one
  float* mean = nullptr;               // for the backward pass
  float* inverse_deviation = nullptr;  // likewise
};
void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& arguments,
                        const BatchNormScratch& scratch, CUstream_st* stream);

struct BatchNormBackward {
  const void* output_gradient = nullptr;
  const void* input = nullptr;
  const std::uint8_t* positive = nullptr;  // of a forward pass with a shortcut and ReLU
  bool relu = false;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  void* input_gradient = nullptr;
  void* shortcut_gradient = nullptr;  // null: there was none
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  bool accumulate = false;  // add to the two above
};
void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arguments,
                         const BatchNormScratch& scratch, CUstream_st* stream);

}  // namespace cohort::kernels
