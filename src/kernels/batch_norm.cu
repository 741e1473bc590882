#include <algorithm>

#include "kernels/batch_norm.h"
#include "kernels/launch.cuh"
#include "kernels/vectors.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 512;
constexpr int kMaxColumns = 8;    // vectors of a row that one block works on
constexpr int kUnroll = 4;        // rows whose loads are under way at once
constexpr int kBlocks = 2 * 132;  // of a reduction, at most: two on each of an H200's processors

// A block takes `columns` neighbouring vectors of the rows `first`, `first + stride`, ... Its
// threads lie in `lines` lines of `columns`; those beyond have nothing to do.
struct Tiling {
  int vectors = 0;  // in a row
  int columns = 0;
  int lines = 0;
  int tiles = 0;  // blocks side by side
  int depth = 0;  // blocks one below another
};

int vector_size(Element element) { return element == Element::kFloat ? 4 : 8; }

Tiling tiling_of(const BatchNormShape& shape, int blocks) {
  Tiling tiling;
  tiling.vectors = shape.channels / vector_size(shape.element);
  tiling.columns = std::min(tiling.vectors, kMaxColumns);
  tiling.lines = kThreads / tiling.columns;
  tiling.tiles = (tiling.vectors + tiling.columns - 1) / tiling.columns;
  // Every thread has some rows, so that what a block costs by itself is little beside them; other
  // workers' kernels have the processors that are left.
  const std::int64_t rows = std::int64_t{tiling.lines} * kUnroll;
  const std::int64_t most = (shape.rows + rows - 1) / rows;
  const std::int64_t wanted = std::max(1, blocks / tiling.tiles);
  tiling.depth = static_cast<int>(std::clamp<std::int64_t>(most, 1, wanted));
  return tiling;
}

dim3 grid_of(const Tiling& tiling) {
  return {static_cast<unsigned>(tiling.depth), static_cast<unsigned>(tiling.tiles)};
}

struct Place {
  int column = 0;  // vector of the row
  int line = 0;
  bool active = false;
};

__device__ Place place_of(const Tiling& tiling) {
  Place place;
  place.line = threadIdx.x / tiling.columns;
  place.column = blockIdx.y * tiling.columns + threadIdx.x % tiling.columns;
  place.active = place.line < tiling.lines && place.column < tiling.vectors;
  return place;
}

// Calls body(row) for this thread's rows.
template <class Body>
__device__ void for_rows(const Tiling& tiling, const Place& place, std::int64_t rows, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * tiling.lines;
  std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * tiling.lines + place.line;
#pragma unroll 1
  for (; row + (kUnroll - 1) * stride < rows; row += kUnroll * stride) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) body(row + i * stride);
  }
  for (; row < rows; row += stride) body(row);
}

// Adds two sums per channel over all blocks of a tile. The block that comes last has them, and is
// told: then first[i], second[i] of thread t < columns * kSize are those of the tile's channel t.
template <int kSize>
__device__ bool reduce_tile(const Tiling& tiling, const Place& place, const float (&first)[kSize],
                            const float (&second)[kSize], const BatchNormScratch& scratch,
                            float& first_sum, float& second_sum) {
  __shared__ float sums[2][kThreads * kSize];
  __shared__ bool last;
  const int width = tiling.columns * kSize;  // channels of a tile
  if (place.line < tiling.lines) {
    const int column = threadIdx.x % tiling.columns;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      sums[0][place.line * width + column * kSize + i] = place.active ? first[i] : 0;
      sums[1][place.line * width + column * kSize + i] = place.active ? second[i] : 0;
    }
  }
  __syncthreads();
  // Each channel's lines are summed in halves, always the same ones.
  for (int lines = tiling.lines; lines > 1;) {
    const int half = (lines + 1) / 2;
    for (int i = threadIdx.x; i < (lines - half) * width; i += kThreads) {
      sums[0][i] += sums[0][half * width + i];
      sums[1][i] += sums[1][half * width + i];
    }
    __syncthreads();
    lines = half;
  }
  const int channels = gridDim.y * width;
  float* partial = scratch.floats;
  for (int i = threadIdx.x; i < width; i += kThreads) {
    const int channel = blockIdx.y * width + i;
    partial[(blockIdx.x * 2 + 0) * channels + channel] = sums[0][i];
    partial[(blockIdx.x * 2 + 1) * channels + channel] = sums[1][i];
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicInc(scratch.counters + blockIdx.y, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
  // The blocks' parts of each channel: some threads take every so manieth, then one adds those up.
  const int parts = kThreads / width;
  const int part = threadIdx.x / width;
  const int at = threadIdx.x % width;
  float a = 0;
  float b = 0;
  if (part < parts) {
    const int channel = blockIdx.y * width + at;
#pragma unroll 4
    for (int block = part; block < gridDim.x; block += parts) {
      a += __ldcg(partial + (block * 2 + 0) * channels + channel);
      b += __ldcg(partial + (block * 2 + 1) * channels + channel);
    }
    sums[0][part * width + at] = a;
    sums[1][part * width + at] = b;
  }
  __syncthreads();
  if (threadIdx.x < width) {
    for (int other = 1; other < parts; ++other) {
      a += sums[0][other * width + at];
      b += sums[1][other * width + at];
    }
    first_sum = a;
    second_sum = b;
  }
  return true;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    statistics_kernel(Tiling tiling, std::int64_t rows, int channels, BatchNormForward arguments,
                      BatchNormScratch scratch) {
  constexpr int kSize = Vector<T>::kSize;
  const Place place = place_of(tiling);
  const T* input = static_cast<const T*>(arguments.input) + place.column * kSize;
  // Sums about the first value of each channel: about 0 the variance would be the small difference
  // of two large numbers where the mean is large.
  float pivot[kSize] = {};
  float first[kSize] = {};
  float second[kSize] = {};
  if (place.active) {
    load(input, pivot);
    for_rows(tiling, place, rows, [&](std::int64_t row) {
      float x[kSize];
      load(input + row * channels, x);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float distance = x[i] - pivot[i];
        first[i] += distance;
        second[i] += distance * distance;
      }
    });
  }
  float sum = 0;
  float squares = 0;
  if (!reduce_tile<kSize>(tiling, place, first, second, scratch, sum, squares)) return;
  const int channel = blockIdx.y * tiling.columns * kSize + threadIdx.x;
  if (threadIdx.x >= tiling.columns * kSize || channel >= channels) return;
  const float count = static_cast<float>(rows);
  const float shift = sum / count;
  const float mean = static_cast<float>(static_cast<const T*>(arguments.input)[channel]) + shift;
  const float variance = fmaxf(0.0F, squares / count - shift * shift);
  arguments.mean[channel] = mean;
  arguments.inverse_deviation[channel] = rsqrtf(variance + arguments.epsilon);
  float& running_mean = arguments.running_mean[channel];
  float& running_variance = arguments.running_variance[channel];
  running_mean += arguments.momentum * (mean - running_mean);
  running_variance += arguments.momentum * (variance * (count / (count - 1)) - running_variance);
  if (channel == 0) ++*arguments.batches;
}

// output = relu(scale x input + shift + shortcut)
template <class T, bool kShortcut, bool kMask>
__global__ void __launch_bounds__(kThreads)
    normalise_kernel(Tiling tiling, std::int64_t rows, int channels, BatchNormForward arguments) {
  constexpr int kSize = Vector<T>::kSize;
  const Place place = place_of(tiling);
  if (!place.active) return;
  const int offset = place.column * kSize;
  const T* input = static_cast<const T*>(arguments.input) + offset;
  const T* shortcut = static_cast<const T*>(arguments.shortcut) + offset;
  T* output = static_cast<T*>(arguments.output) + offset;
  const float lowest = arguments.relu ? 0.0F : -INFINITY;
  float scale[kSize];
  float shift[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    scale[i] = arguments.weight[offset + i] * arguments.inverse_deviation[offset + i];
    shift[i] = arguments.bias[offset + i] - arguments.mean[offset + i] * scale[i];
  }
  for_rows(tiling, place, rows, [&](std::int64_t row) {
    float x[kSize];
    float added[kSize] = {};
    unsigned positive = 0;
    load(input + row * channels, x);
    if constexpr (kShortcut) load(shortcut + row * channels, added);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float y = scale[i] * x[i] + shift[i] + added[i];
      positive |= (y > 0 ? 1U : 0U) << i;
      x[i] = y < lowest ? lowest : y;  // a NaN stays one
    }
    if constexpr (kMask) {
      arguments.positive[row * tiling.vectors + place.column] = static_cast<std::uint8_t>(positive);
    }
    Vector<T>::store(output + row * channels, x);
  });
}

// Whether ReLU let the elements through, for the gradient: as the forward pass kept it where there
// was a shortcut, else from the input again.
enum class Mask { kNone, kKept, kFromInput };

template <class T, Mask kMask, bool kShortcut>
__global__ void __launch_bounds__(kThreads)
    gradient_sums_kernel(Tiling tiling, std::int64_t rows, int channels,
                         BatchNormBackward arguments, BatchNormScratch scratch, float* sums) {
  constexpr int kSize = Vector<T>::kSize;
  const Place place = place_of(tiling);
  const int offset = place.column * kSize;
  float first[kSize] = {};   // of the gradient behind ReLU
  float second[kSize] = {};  // of it times the input's distance from the mean
  if (place.active) {
    const T* gradient = static_cast<const T*>(arguments.output_gradient) + offset;
    const T* input = static_cast<const T*>(arguments.input) + offset;
    T* shortcut = static_cast<T*>(arguments.shortcut_gradient) + offset;
    float mean[kSize];
    float scale[kSize];
    float bias[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      mean[i] = arguments.mean[offset + i];
      scale[i] = arguments.weight[offset + i] * arguments.inverse_deviation[offset + i];
      bias[i] = arguments.bias[offset + i] - mean[i] * scale[i];
    }
    for_rows(tiling, place, rows, [&](std::int64_t row) {
      float d[kSize];
      float x[kSize];
      unsigned positive = 0;
      load(gradient + row * channels, d);
      load(input + row * channels, x);
      if constexpr (kMask == Mask::kKept) {
        positive = arguments.positive[row * tiling.vectors + place.column];
      }
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        if (kMask == Mask::kFromInput && !(scale[i] * x[i] + bias[i] > 0)) d[i] = 0;
        if (kMask == Mask::kKept && (positive >> i & 1U) == 0) d[i] = 0;
        first[i] += d[i];
        second[i] += d[i] * (x[i] - mean[i]);
      }
      if constexpr (kShortcut) Vector<T>::store(shortcut + row * channels, d);
    });
  }
  float sum = 0;
  float product = 0;
  if (!reduce_tile<kSize>(tiling, place, first, second, scratch, sum, product)) return;
  const int channel = blockIdx.y * tiling.columns * kSize + threadIdx.x;
  if (threadIdx.x >= tiling.columns * kSize || channel >= channels) return;
  sums[channel] = sum;
  sums[channels + channel] = product;
  const float of_weight = product * arguments.inverse_deviation[channel];
  float& weight_gradient = arguments.weight_gradient[channel];
  float& bias_gradient = arguments.bias_gradient[channel];
  weight_gradient = arguments.accumulate ? weight_gradient + of_weight : of_weight;
  bias_gradient = arguments.accumulate ? bias_gradient + sum : sum;
}

// input_gradient = scale (d - mean(d) - (x - m) mean(d (x - m)) / deviation^2), where d is the
// gradient behind ReLU.
template <class T, Mask kMask>
__global__ void __launch_bounds__(kThreads)
    input_gradient_kernel(Tiling tiling, std::int64_t rows, int channels,
                          BatchNormBackward arguments, const void* masked, const float* sums) {
  constexpr int kSize = Vector<T>::kSize;
  const Place place = place_of(tiling);
  if (!place.active) return;
  const int offset = place.column * kSize;
  const T* gradient = static_cast<const T*>(masked) + offset;
  const T* input = static_cast<const T*>(arguments.input) + offset;
  T* result = static_cast<T*>(arguments.input_gradient) + offset;
  const float share = 1.0F / static_cast<float>(rows);
  float scale[kSize];
  float shift[kSize];
  float of_input[kSize];
  float constant[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const int channel = offset + i;
    const float mean = arguments.mean[channel];
    const float inverse = arguments.inverse_deviation[channel];
    scale[i] = arguments.weight[channel] * inverse;
    shift[i] = arguments.bias[channel] - mean * scale[i];
    of_input[i] = -scale[i] * inverse * inverse * sums[channels + channel] * share;
    constant[i] = -scale[i] * sums[channel] * share - of_input[i] * mean;
  }
  for_rows(tiling, place, rows, [&](std::int64_t row) {
    float d[kSize];
    float x[kSize];
    load(gradient + row * channels, d);
    load(input + row * channels, x);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (kMask == Mask::kFromInput && !(scale[i] * x[i] + shift[i] > 0)) d[i] = 0;
      d[i] = scale[i] * d[i] + of_input[i] * x[i] + constant[i];
    }
    Vector<T>::store(result + row * channels, d);
  });
}

template <class T>
void forward(const BatchNormShape& shape, const BatchNormForward& arguments,
             const BatchNormScratch& scratch, cudaStream_t stream) {
  const Tiling sums = tiling_of(shape, kBlocks);
  statistics_kernel<T><<<grid_of(sums), kThreads, 0, stream>>>(sums, shape.rows, shape.channels,
                                                               arguments, scratch);
  check_launch("batch_norm statistics");
  const Tiling all = tiling_of(shape, 4 * kBlocks);
  auto normalise = normalise_kernel<T, false, false>;
  if (arguments.shortcut != nullptr) {
    normalise = arguments.positive != nullptr ? normalise_kernel<T, true, true>
                                              : normalise_kernel<T, true, false>;
  }
  normalise<<<grid_of(all), kThreads, 0, stream>>>(all, shape.rows, shape.channels, arguments);
  check_launch("batch_norm normalise");
}

template <class T>
void backward(const BatchNormShape& shape, const BatchNormBackward& arguments,
              const BatchNormScratch& scratch, cudaStream_t stream) {
  const Tiling tiling = tiling_of(shape, kBlocks);
  const Tiling all = tiling_of(shape, 4 * kBlocks);
  const bool shortcut = arguments.shortcut_gradient != nullptr;
  // The sums stand behind the blocks' parts of them.
  float* sums = scratch.floats + batch_norm_scratch_floats(shape) - 2 * shape.channels;
  auto gradient_sums = gradient_sums_kernel<T, Mask::kNone, false>;
  auto input_gradient = input_gradient_kernel<T, Mask::kNone>;
  const void* masked = arguments.output_gradient;
  if (shortcut) {
    gradient_sums = arguments.relu ? gradient_sums_kernel<T, Mask::kKept, true>
                                   : gradient_sums_kernel<T, Mask::kNone, true>;
    masked = arguments.shortcut_gradient;
  } else if (arguments.relu) {
    gradient_sums = gradient_sums_kernel<T, Mask::kFromInput, false>;
    input_gradient = input_gradient_kernel<T, Mask::kFromInput>;
  }
  gradient_sums<<<grid_of(tiling), kThreads, 0, stream>>>(tiling, shape.rows, shape.channels,
                                                          arguments, scratch, sums);
  check_launch("batch_norm gradient sums");
  input_gradient<<<grid_of(all), kThreads, 0, stream>>>(all, shape.rows, shape.channels, arguments,
                                                        masked, sums);
  check_launch("batch_norm input gradient");
}

}  // namespace

bool suits_batch_norm(const BatchNormShape& shape) {
  return shape.rows > 1 && shape.channels > 0 && shape.channels % vector_size(shape.element) == 0;
}

std::int64_t batch_norm_scratch_floats(const BatchNormShape& shape) {
  const Tiling tiling = tiling_of(shape, kBlocks);
  const std::int64_t width = std::int64_t{tiling.columns} * vector_size(shape.element);
  return 2 * tiling.depth * tiling.tiles * width + 2 * shape.channels;
}

std::int64_t batch_norm_counters(const BatchNormShape& shape) {
  return tiling_of(shape, kBlocks).tiles;
}

std::int64_t batch_norm_mask_bytes(const BatchNormShape& shape) {
  return shape.rows * (shape.channels / vector_size(shape.element));
}

void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& arguments,
                        const BatchNormScratch& scratch, CUstream_st* stream) {
  shape.element == Element::kFloat ? forward<float>(shape, arguments, scratch, stream)
                                   : forward<__nv_bfloat16>(shape, arguments, scratch, stream);
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arguments,
                         const BatchNormScratch& scratch, CUstream_st* stream) {
  shape.element == Element::kFloat ? backward<float>(shape, arguments, scratch, stream)
                                   : backward<__nv_bfloat16>(shape, arguments, scratch, stream);
}

}  // namespace cohort::kernels
