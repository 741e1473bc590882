#include "models/quick_pool.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "core/simd.h"

namespace cohort::models {
namespace {

// A value that is not a number wins. Both comparisons always, so that it becomes vector code.
inline float larger(float a, float b) {
  const int takes = static_cast<int>(b > a) | static_cast<int>(b != b);
  return takes != 0 ? b : a;
}

// One row of windows: `width` of them, over two rows of pixels.
COHORT_SIMD_CLONES
void pool_row(const float* __restrict upper, const float* __restrict lower, float* __restrict out,
              std::int64_t width, std::int64_t channels) {
  for (std::int64_t x = 0; x < width; ++x) {
    const float* a = upper + 2 * x * channels;
    const float* b = lower + 2 * x * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      out[x * channels + c] = larger(larger(larger(a[c], a[channels + c]), b[c]), b[channels + c]);
    }
  }
}

}  // namespace

bool suits_quick_pool(const at::Tensor& input) {
  return input.dim() == 4 && input.is_cpu() && input.scalar_type() == at::kFloat &&
         !(c10::GradMode::is_enabled() && input.requires_grad()) && input.size(2) >= 2 &&
         input.size(3) >= 2 && input.size(1) > 1 &&
         input.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor quick_max_pool(const at::Tensor& input) {
  const std::int64_t channels = input.size(1);
  const std::int64_t rows = input.size(2) / 2;
  const std::int64_t columns = input.size(3) / 2;
  const std::int64_t row_floats = input.size(3) * channels;
  at::Tensor output = at::empty({input.size(0), channels, rows, columns}, input.options(),
                                at::MemoryFormat::ChannelsLast);
  const float* from = input.data_ptr<float>();
  float* to = output.data_ptr<float>();
  at::parallel_for(0, input.size(0), 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const float* upper = from + (sample * input.size(2) + 2 * row) * row_floats;
        pool_row(upper, upper + row_floats, to + (sample * rows + row) * columns * channels,
                 columns, channels);
      }
    }
  });
  return output;
}

}  // namespace cohort::models
