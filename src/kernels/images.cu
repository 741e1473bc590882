#include <cuda_bf16.h>

#include "core/error.h"
#include "kernels/images.h"
#include "kernels/launch.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kOfThread = 4;  // values of a batch that a thread makes, about
constexpr int kMostParts = 64;  // blocks that share an image

struct AxisView {
  int size;
  int taps;
  const int* first;
  const int* count;
  const float* weights;
};

struct SetView {
  const std::uint8_t* pixels;
  const float* values;
  int channels;
  int height;
  int width;
  AxisView rows;
  AxisView columns;
};

// Of the image as it is drawn, before it is resized.
struct DrawnImage {
  const SetView& set;
  const ImageDraw& draw;

  __device__ float at(int channel, int y, int x) const {
    const float* values = set.values + 256 * channel;
    const int row = y + draw.down;
    const int column = (draw.mirror ? set.width - 1 - x : x) + draw.right;
    if (row < 0 || row >= set.height || column < 0 || column >= set.width) return values[0];
    const std::int64_t plane = draw.index * set.channels + channel;
    return values[set.pixels[(plane * set.height + row) * set.width + column]];
  }

  __device__ float resized(int channel, int y, int x) const {
    const float* row_weights = set.rows.weights + y * set.rows.taps;
    const float* column_weights = set.columns.weights + x * set.columns.taps;
    float sum = 0;
    for (int k = 0; k < set.rows.count[y]; ++k) {
      float of_row = 0;
      for (int j = 0; j < set.columns.count[x]; ++j) {
        of_row += at(channel, set.rows.first[y] + k, set.columns.first[x] + j) * column_weights[j];
      }
      sum += of_row * row_weights[k];
    }
    return sum;
  }
};

__device__ void put(float* to, float value) { *to = value; }
__device__ void put(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

// The blocks (n, 0), (n, 1), ... make image n.
template <class T, bool kResized>
__global__ void __launch_bounds__(kThreads)
    make_kernel(const __grid_constant__ SetView set, const ImageDraw* draws, T* inputs,
                bool channels_last, std::int64_t* labels) {
  // It comes from main memory: once for all threads.
  __shared__ ImageDraw draw;
  if (threadIdx.x == 0) draw = draws[blockIdx.x];
  __syncthreads();
  const DrawnImage image{set, draw};
  const int width = kResized ? set.columns.size : set.width;
  const int plane = (kResized ? set.rows.size : set.height) * width;
  const int size = set.channels * plane;
  T* to = inputs + static_cast<std::int64_t>(blockIdx.x) * size;
  for (int i = blockIdx.y * kThreads + threadIdx.x; i < size; i += gridDim.y * kThreads) {
    const int channel = channels_last ? i % set.channels : i / plane;
    const int place = channels_last ? i / set.channels : i % plane;
    const int y = place / width;
    const int x = place % width;
    put(to + i, kResized ? image.resized(channel, y, x) : image.at(channel, y, x));
  }
  if (blockIdx.y == 0 && threadIdx.x == 0) labels[blockIdx.x] = draw.label;
}

template <class T>
void put_there(const GpuMemory& memory, std::span<const T> values) {
  if (values.empty()) return;
  copy_and_wait(memory.as<void>(), values.data(), values.size_bytes(), nullptr);
}

template <class T>
void launch(const SetView& set, std::span<const ImageDraw> draws, const ImageBatch& batch,
            cudaStream_t stream) {
  const bool resized = set.rows.size > 0;
  const std::int64_t size = static_cast<std::int64_t>(set.channels) *
                            (resized ? set.rows.size * set.columns.size : set.height * set.width);
  const auto parts = std::clamp<std::int64_t>(size / (kOfThread * kThreads), 1, kMostParts);
  const dim3 grid(static_cast<unsigned>(draws.size()), static_cast<unsigned>(parts));
  const auto kernel = resized ? make_kernel<T, true> : make_kernel<T, false>;
  kernel<<<grid, kThreads, 0, stream>>>(set, draws.data(), static_cast<T*>(batch.inputs),
                                        batch.channels_last, batch.labels);
  check_launch("to make a batch");
}

}  // namespace

GpuImages::Axis::Axis(const ResizeAxis& axis)
    : size(static_cast<int>(axis.first.size())),
      taps(axis.taps),
      first(axis.first.size_bytes()),
      count(axis.count.size_bytes()),
      weights(axis.weights.size_bytes()) {
  put_there(first, axis.first);
  put_there(count, axis.count);
  put_there(weights, axis.weights);
}

GpuImages::GpuImages(const ImageSet& set)
    : channels_(set.channels),
      height_(set.height),
      width_(set.width),
      pixels_(set.pixels.size_bytes()),
      values_(set.values.size_bytes()),
      rows_(set.rows),
      columns_(set.columns) {
  COHORT_CHECK(set.values.size() == 256 * static_cast<std::size_t>(set.channels),
               "a value for each byte of each channel");
  put_there(pixels_, set.pixels);
  put_there(values_, set.values);
}

void GpuImages::make(std::span<const ImageDraw> draws, const ImageBatch& batch,
                     CUstream_st* stream) const {
  if (draws.empty()) return;
  const auto view_of = [](const Axis& axis) {
    return AxisView{axis.size, axis.taps, axis.first.as<const int>(), axis.count.as<const int>(),
                    axis.weights.as<const float>()};
  };
  const SetView set{pixels_.as<const std::uint8_t>(), values_.as<const float>(), channels_,
                    height_, width_, view_of(rows_), view_of(columns_)};
  batch.element == Element::kFloat ? launch<float>(set, draws, batch, stream)
                                   : launch<__nv_bfloat16>(set, draws, batch, stream);
}

}  // namespace cohort::kernels
