#include "collectives/sum.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "core/simd.h"

namespace cohort::collectives {
namespace {

// Fixed lengths, so that every optimisation level makes vector instructions of them.
constexpr std::int64_t kLane = 64;

COHORT_SIMD_CLONES
void add_two(const float* a, const float* b, float* out, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLane <= count; i += kLane) {
    float sum[kLane];
    for (std::int64_t j = 0; j < kLane; ++j) sum[j] = a[i + j] + b[i + j];
    std::memcpy(out + i, sum, sizeof sum);
  }
  for (; i < count; ++i) out[i] = a[i] + b[i];
}

COHORT_SIMD_CLONES
void add_two(const float* a, const float* b, float* out, float* copy, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLane <= count; i += kLane) {
    float sum[kLane];
    for (std::int64_t j = 0; j < kLane; ++j) sum[j] = a[i + j] + b[i + j];
    std::memcpy(out + i, sum, sizeof sum);
    std::memcpy(copy + i, sum, sizeof sum);
  }
  for (; i < count; ++i) copy[i] = out[i] = a[i] + b[i];
}

COHORT_SIMD_CLONES
void add_four(const float* a, const float* b, const float* c, const float* d, float* out,
              std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLane <= count; i += kLane) {
    float sum[kLane];
    for (std::int64_t j = 0; j < kLane; ++j) {
      sum[j] = ((a[i + j] + b[i + j]) + c[i + j]) + d[i + j];
    }
    std::memcpy(out + i, sum, sizeof sum);
  }
  for (; i < count; ++i) out[i] = ((a[i] + b[i]) + c[i]) + d[i];
}

}  // namespace

void sum_in_order(std::span<const float* const> inputs, float* out, float* copy,
                  std::int64_t count) {
  if (inputs.size() == 2) {
    if (copy == nullptr) {
      add_two(inputs[0], inputs[1], out, count);
    } else {
      add_two(inputs[0], inputs[1], out, copy, count);
    }
    return;
  }
  // A block of the sum stays in the first-level cache while input after input is added to it, and
  // is written when nothing more is read: an input may be where it goes.
  constexpr std::int64_t kBlock = 2048;
  float block[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    const float* sum = inputs[0] + begin;
    std::size_t next = 1;
    for (; next + 3 <= inputs.size(); next += 3) {
      add_four(sum, inputs[next] + begin, inputs[next + 1] + begin, inputs[next + 2] + begin, block,
               size);
      sum = block;
    }
    for (; next < inputs.size(); ++next) {
      add_two(sum, inputs[next] + begin, block, size);
      sum = block;
    }
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    if (out + begin != sum) std::memcpy(out + begin, sum, bytes);
    if (copy != nullptr && copy + begin != sum) std::memcpy(copy + begin, sum, bytes);
  }
}

void sum_in_order(std::span<const float* const> inputs, float* out, std::int64_t count) {
  sum_in_order(inputs, out, nullptr, count);
}

void copy_past_caches(const float* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__SSE2__)
  constexpr std::int64_t kLine = 16;
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    for (; i + kLine <= count; i += kLine) {
      for (std::int64_t j = 0; j < kLine; j += 4) {
        _mm_stream_ps(to + i + j, _mm_loadu_ps(from + i + j));
      }
    }
  }
#endif
  if (i < count) std::memcpy(to + i, from + i, static_cast<std::size_t>(count - i) * sizeof(float));
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

void sum_past_caches(std::span<const float* const> inputs, float* out, std::int64_t count) {
  constexpr std::int64_t kBlock = 2048;
  float sum[kBlock];
  std::vector<const float*> block(inputs.begin(), inputs.end());
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    sum_in_order(block, sum, size);
    copy_past_caches(sum, out + begin, size);
    for (const float*& input : block) input += size;
  }
}

void sum_past_caches(std::span<const float* const> inputs, float* out, float* copy,
                     std::int64_t count) {
  constexpr std::int64_t kBlock = 4096;
  std::vector<const float*> block(inputs.begin(), inputs.end());
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    sum_in_order(block, out + begin, size);
    copy_past_caches(out + begin, copy + begin, size);
    for (const float*& input : block) input += size;
  }
}

}  // namespace cohort::collectives
