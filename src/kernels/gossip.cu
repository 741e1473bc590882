#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/gossip.h"
#include "kernels/launch.cuh"
#include "kernels/vectors.cuh"

namespace cohort::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8 * 132;
constexpr int kPiece = 8 * kThreads;
constexpr std::int64_t kGroup = 16;  // elements to which tensors are aligned
using Count = unsigned long long;    // of which there is an atomic minimum
constexpr Count kNever = std::numeric_limits<Count>::max();

// A block's part of a tensor.
struct Piece {
  std::int64_t begin;  // element of the vector
  int size;
  int tensor;
};

struct Tensor {
  std::int64_t size;
  int first_piece;
  int pieces;
};

unsigned blocks_for(std::int64_t items) {
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kMaxBlocks));
}

__global__ void __launch_bounds__(kThreads)
    combine_kernel(float* out, float a, const float* x, float b, const float* y,
                   std::int64_t size) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < size / 4; i += stride) {
    float p[4], q[4];
    load<float>(x + 4 * i, p);
    load<float>(y + 4 * i, q);
#pragma unroll
    for (int k = 0; k < 4; ++k) p[k] = a * p[k] + b * q[k];
    Vector<float>::store(out + 4 * i, p);
  }
  for (std::int64_t i = size / 4 * 4 + thread; i < size; i += stride) out[i] = a * x[i] + b * y[i];
}

// Numbers that are sent one by one, as src/compressors converts them.
struct Floats {
  using Raw = float;
  __device__ static Raw narrow(float value) { return value; }
  __device__ static float widen(Raw raw) { return raw; }
};

struct Bf16s {
  using Raw = unsigned short;
  __device__ static Raw narrow(float value) {
    const unsigned bits = __float_as_uint(value);
    const unsigned magnitude = bits & 0x7fffffffU;
    const unsigned nearest = magnitude + 0x7fffU + (magnitude >> 16 & 1U);
    const unsigned finite = nearest < 0x7f800000U ? nearest : 0x7f7f0000U;
    const unsigned rounded = magnitude < 0x7f800000U ? finite : 0x7f800000U;
    return static_cast<Raw>((bits >> 16 & 0x8000U) | rounded >> 16);
  }
  __device__ static float widen(Raw raw) {
    return __uint_as_float(static_cast<unsigned>(raw) << 16);
  }
};

struct Fp16s {
  using Raw = unsigned short;
  __device__ static Raw narrow(float value) {
    const unsigned bits = __float_as_uint(value);
    const unsigned magnitude = bits & 0x7fffffffU;
    unsigned half = 0x7bffU;               // 65504 and above
    if (magnitude < 0x38800000U) {         // 2^-14: below it halves lose bits
      half = __float_as_uint(__uint_as_float(magnitude) + 0.5F) - 0x3f000000U;
    } else if (magnitude < 0x477fe000U) {  // 65504
      half = (magnitude - 0x38000000U + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
    }
    return static_cast<Raw>((bits >> 16 & 0x8000U) | half);
  }
  __device__ static float widen(Raw raw) {
    const unsigned magnitude = raw & 0x7fffU;
    const unsigned bits = magnitude >= 0x400U
                              ? (magnitude << 13) + 0x38000000U
                              : __float_as_uint(static_cast<float>(magnitude) * 0x1p-24F);
    return __uint_as_float((raw & 0x8000U) << 16 | bits);
  }
};

template <class Format>
__global__ void __launch_bounds__(kThreads)
    encode_values(const Piece* pieces, const float* x, typename Format::Raw* out, Count sequence,
                  Count* infinite) {
  const Piece piece = pieces[blockIdx.x];
  bool finite = true;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const float value = x[piece.begin + i];
    finite &= isfinite(value) != 0;
    out[piece.begin + i] = Format::narrow(value);
  }
  if (!finite) atomicMin(infinite, sequence);
}

template <class Format>
__global__ void __launch_bounds__(kThreads)
    decode_values(const Piece* pieces, const typename Format::Raw* in, float keep, float weight,
                  float* y) {
  const Piece piece = pieces[blockIdx.x];
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const std::int64_t at = piece.begin + i;
    y[at] = keep * y[at] + weight * Format::widen(in[at]);
  }
}

__device__ double sum_of_warp(double value) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0U, value, lane);
  return value;
}

// The sum over a block, in its first warp.
__device__ double sum_of_block(double value) {
  __shared__ double warps[kThreads / 32];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  return sum_of_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0);
}

// A bit for each element's sign, 16 elements to a word, and the sum of a piece's magnitudes.
__global__ void __launch_bounds__(kThreads)
    encode_signs(const Piece* pieces, const float* x, unsigned short* signs, double* sums) {
  const Piece piece = pieces[blockIdx.x];
  double sum = 0;
#pragma unroll
  for (int base = 0; base < kPiece; base += kThreads) {
    const int i = base + static_cast<int>(threadIdx.x);
    const float value = i < piece.size ? x[piece.begin + i] : 0.0F;
    sum += static_cast<double>(fabsf(value));
    const unsigned word = __ballot_sync(~0U, __float_as_uint(value) >> 31);
    if (threadIdx.x % kGroup == 0 && i < piece.size) {
      const unsigned shift = threadIdx.x % 32;
      signs[(piece.begin + i) / kGroup] = static_cast<unsigned short>(word >> shift);
    }
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The mean magnitude of each tensor: a warp adds up its pieces.
__global__ void scale_signs(const Tensor* tensors, const double* sums, float* scales,
                            Count sequence, Count* infinite) {
  const Tensor tensor = tensors[blockIdx.x];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < tensor.pieces; i += 32) {
    sum += sums[tensor.first_piece + i];
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x != 0) return;
  const float scale =
      tensor.size > 0 ? static_cast<float>(sum / static_cast<double>(tensor.size)) : 0.0F;
  scales[blockIdx.x] = scale;
  if (!isfinite(scale)) atomicMin(infinite, sequence);
}

__global__ void __launch_bounds__(kThreads)
    decode_signs(const Piece* pieces, const float* scales, const unsigned short* signs, float keep,
                 float weight, float* y) {
  const Piece piece = pieces[blockIdx.x];
  const float step = weight * scales[piece.tensor];
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < piece.size; i += kThreads) {
    const std::int64_t at = piece.begin + i;
    const bool negative = (signs[at / kGroup] >> at % kGroup & 1) != 0;
    y[at] = keep * y[at] + (negative ? -step : step);
  }
}

std::vector<Piece> pieces_of(std::span<const Range> tensors) {
  std::vector<Piece> pieces;
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const Range& tensor = tensors[n];
    COHORT_CHECK(tensor.begin % kGroup == 0, "tensors in a GPU's memory are aligned");
    for (std::int64_t at = tensor.begin; at < tensor.end(); at += kPiece) {
      const auto size = static_cast<int>(std::min<std::int64_t>(kPiece, tensor.end() - at));
      pieces.push_back({at, size, static_cast<int>(n)});
    }
  }
  return pieces;
}

std::vector<Tensor> tensors_of(std::span<const Range> tensors) {
  std::vector<Tensor> all;
  int pieces = 0;
  for (const Range& tensor : tensors) {
    all.push_back({tensor.size, pieces, static_cast<int>((tensor.size + kPiece - 1) / kPiece)});
    pieces += all.back().pieces;
  }
  return all;
}

std::size_t end_of(std::span<const Range> tensors) {
  return tensors.empty() ? 0 : static_cast<std::size_t>(tensors.back().end());
}

// The scales stand first, in whole groups.
std::size_t scale_bytes(int tensors) {
  return (static_cast<std::size_t>(tensors) * sizeof(float) + 15) / 16 * 16;
}

std::size_t bytes_of(Code code, std::span<const Range> tensors) {
  const std::size_t size = end_of(tensors);
  switch (code) {
    case Code::kFloats:
      return size * sizeof(float);
    case Code::kBf16:
    case Code::kFp16:
      return size * sizeof(unsigned short);
    case Code::kSign:
      return scale_bytes(static_cast<int>(tensors.size())) +
             (size + kGroup - 1) / kGroup * sizeof(unsigned short);
  }
  return 0;
}

// Calls use(format) for a code whose numbers are sent one by one.
template <class Use>
void with_format(Code code, Use&& use) {
  if (code == Code::kFloats) use(Floats{});
  if (code == Code::kBf16) use(Bf16s{});
  if (code == Code::kFp16) use(Fp16s{});
}

}  // namespace

GpuMemory::GpuMemory(std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMalloc(&data_, bytes), "memory for gossip");
  // On the default stream, which others do not wait for.
  const cudaError_t cleared = cudaMemset(data_, 0, bytes);
  const cudaError_t done = cleared == cudaSuccess ? cudaStreamSynchronize(nullptr) : cleared;
  if (done != cudaSuccess) cudaFree(data_);
  check(done, "memory for gossip");
}

GpuMemory::~GpuMemory() { cudaFree(data_); }

GpuEvent::GpuEvent() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
}

GpuEvent::~GpuEvent() { cudaEventDestroy(event_); }

void GpuEvent::record(CUstream_st* stream) { check(cudaEventRecord(event_, stream), "an event"); }

void GpuEvent::hold(CUstream_st* stream) const {
  check(cudaStreamWaitEvent(stream, event_, 0), "to wait for an event");
}

void GpuEvent::wait() const { check(cudaEventSynchronize(event_), "to wait for an event"); }

void copy_and_wait(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
  check(cudaStreamSynchronize(stream), "a copy");
}

bool in_gpu_memory(const void* address) {
  cudaPointerAttributes place = {};
  check(cudaPointerGetAttributes(&place, address), "to say where a vector is");
  return place.type == cudaMemoryTypeDevice;
}

void clear(std::span<float> y, CUstream_st* stream) {
  check(cudaMemsetAsync(y.data(), 0, y.size_bytes(), stream), "to clear a vector");
}

void copy(std::span<const float> from, std::span<float> to, CUstream_st* stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDeviceToDevice, stream),
        "a copy");
}

void combine(std::span<float> out, float a, const float* x, float b, const float* y,
             CUstream_st* stream) {
  const auto size = static_cast<std::int64_t>(out.size());
  combine_kernel<<<blocks_for((size + 3) / 4), kThreads, 0, stream>>>(out.data(), a, x, b, y, size);
  check_launch("a sum of vectors");
}

VectorCodec::VectorCodec(Code code, std::span<const Range> tensors, CUstream_st* stream)
    : code_(code),
      stream_(stream),
      tensors_(static_cast<int>(tensors.size())),
      pieces_(static_cast<int>(pieces_of(tensors).size())),
      message_bytes_(bytes_of(code, tensors)),
      piece_table_(static_cast<std::size_t>(pieces_) * sizeof(Piece)),
      tensor_table_(tensors.size() * sizeof(Tensor)),
      partial_sums_(static_cast<std::size_t>(pieces_) * sizeof(double)),
      infinite_(sizeof(Count)) {
  const std::vector<Piece> pieces = pieces_of(tensors);
  const std::vector<Tensor> all = tensors_of(tensors);
  const auto put = [&](const GpuMemory& to, const void* from, std::size_t bytes) {
    copy_and_wait(to.as<void>(), from, bytes, stream_);
  };
  put(piece_table_, pieces.data(), pieces.size() * sizeof(Piece));
  put(tensor_table_, all.data(), all.size() * sizeof(Tensor));
  put(infinite_, &kNever, sizeof kNever);
}

void VectorCodec::encode(const float* x, std::uint64_t sequence, void* message) {
  if (pieces_ == 0) return;
  const auto blocks = static_cast<unsigned>(pieces_);
  const auto* pieces = piece_table_.as<const Piece>();
  auto* infinite = infinite_.as<Count>();
  with_format(code_, [&](auto format) {
    using Format = decltype(format);
    encode_values<Format><<<blocks, kThreads, 0, stream_>>>(
        pieces, x, static_cast<typename Format::Raw*>(message), sequence, infinite);
  });
  if (code_ == Code::kSign) {
    auto* signs = static_cast<std::byte*>(message) + scale_bytes(tensors_);
    auto* sums = partial_sums_.as<double>();
    encode_signs<<<blocks, kThreads, 0, stream_>>>(
        pieces, x, reinterpret_cast<unsigned short*>(signs), sums);
    scale_signs<<<static_cast<unsigned>(tensors_), 32, 0, stream_>>>(
        tensor_table_.as<const Tensor>(), sums, static_cast<float*>(message), sequence, infinite);
  }
  check_launch("to encode a message");
}

void VectorCodec::decode(const void* message, float keep, float weight, float* y) {
  if (pieces_ == 0) return;
  const auto blocks = static_cast<unsigned>(pieces_);
  const auto* pieces = piece_table_.as<const Piece>();
  with_format(code_, [&](auto format) {
    using Format = decltype(format);
    decode_values<Format><<<blocks, kThreads, 0, stream_>>>(
        pieces, static_cast<const typename Format::Raw*>(message), keep, weight, y);
  });
  if (code_ == Code::kSign) {
    const auto* signs = static_cast<const std::byte*>(message) + scale_bytes(tensors_);
    decode_signs<<<blocks, kThreads, 0, stream_>>>(
        pieces, static_cast<const float*>(message), reinterpret_cast<const unsigned short*>(signs),
        keep, weight, y);
  }
  check_launch("to decode a message");
}

std::uint64_t VectorCodec::first_infinite() {
  Count first = 0;
  copy_and_wait(&first, infinite_.as<void>(), sizeof first, stream_);
  return first;
}

}  // namespace cohort::kernels
