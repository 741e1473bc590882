#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/elements.cuh"
#include "kernels/largest.cuh"
#include "kernels/launch.cuh"
#include "kernels/levels.cuh"
#include "kernels/pieces.cuh"
#include "kernels/vector_codec.h"

namespace cohort::kernels {
namespace {

constexpr Count kNever = std::numeric_limits<Count>::max();

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
    finite &= is_finite(value);
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

// The mean magnitude of each tensor.
__global__ void __launch_bounds__(kThreads)
    scale_signs(const Tensor* tensors, const double* sums, float* scales, Count sequence,
                Count* infinite) {
  const Tensor tensor = tensors[blockIdx.x];
  const double sum = sum_of_pieces(tensor, sums);
  if (threadIdx.x != 0) return;
  const float scale =
      tensor.size > 0 ? static_cast<float>(sum / static_cast<double>(tensor.size)) : 0.0F;
  scales[blockIdx.x] = scale;
  if (!is_finite(scale)) atomicMin(infinite, sequence);
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

std::vector<Piece> pieces_of(std::span<const CodedTensor> tensors) {
  std::vector<Piece> pieces;
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const Range& tensor = tensors[n].place;
    COHORT_CHECK(tensor.begin % kGroup == 0, "tensors in a GPU's memory are aligned");
    for (std::int64_t at = tensor.begin; at < tensor.end(); at += kPiece) {
      const auto size = static_cast<int>(std::min<std::int64_t>(kPiece, tensor.end() - at));
      pieces.push_back({at, size, static_cast<int>(n)});
    }
  }
  return pieces;
}

std::vector<Tensor> tensors_of(std::span<const CodedTensor> tensors) {
  std::vector<Tensor> all;
  std::int64_t kept = 0;
  int pieces = 0;
  for (const CodedTensor& tensor : tensors) {
    const Range& place = tensor.place;
    const auto own = static_cast<int>((place.size + kPiece - 1) / kPiece);
    all.push_back(
        {place.begin, place.size, tensor.kept, kept, tensor.factor, pieces, own});
    kept += tensor.kept;
    pieces += own;
  }
  return all;
}

std::vector<Chunk> chunks_of(const std::vector<Tensor>& tensors) {
  std::vector<Chunk> chunks;
  int searches = 0;
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const Tensor& tensor = tensors[n];
    if (!is_large(tensor)) continue;
    const auto first = static_cast<int>(chunks.size());
    const auto count = static_cast<int>((tensor.size + kChunk - 1) / kChunk);
    for (int i = 0; i < count; ++i) {
      const std::int64_t from = static_cast<std::int64_t>(i) * kChunk;
      const auto size = static_cast<int>(std::min<std::int64_t>(kChunk, tensor.size - from));
      chunks.push_back({tensor.begin + from, size, static_cast<int>(n), searches, first, count});
    }
    ++searches;
  }
  return chunks;
}

std::int64_t all_kept(std::span<const CodedTensor> tensors) {
  std::int64_t kept = 0;
  for (const CodedTensor& tensor : tensors) kept += tensor.kept;
  return kept;
}

// A number for each tensor stands first, in whole groups; of sparse ones the values.
std::size_t header_of(Code code, std::span<const CodedTensor> tensors) {
  const bool sparse = code == Code::kTopK || code == Code::kRandomK;
  const bool scaled = code == Code::kSign || code == Code::kQsgd;
  const std::size_t numbers =
      sparse ? static_cast<std::size_t>(all_kept(tensors)) : scaled ? tensors.size() : 0;
  return (numbers * sizeof(float) + 15) / 16 * 16;
}

// Of qsgd: whether a level and its sign fit into 16 bits.
bool short_levels(unsigned levels) { return levels < 1U << 15; }

std::size_t body_of(Code code, std::span<const CodedTensor> tensors, unsigned levels) {
  const auto size =
      static_cast<std::size_t>(tensors.empty() ? 0 : tensors.back().place.end());
  switch (code) {
    case Code::kFloats:
      return size * sizeof(float);
    case Code::kQsgd:
      return size * (short_levels(levels) ? sizeof(unsigned short) : sizeof(unsigned));
    case Code::kBf16:
    case Code::kFp16:
      return size * sizeof(unsigned short);
    case Code::kSign:
      return (size + kGroup - 1) / kGroup * sizeof(unsigned short);
    case Code::kTopK:
    case Code::kRandomK:
      COHORT_CHECK(size <= std::numeric_limits<unsigned>::max(), "elements have 32-bit numbers");
      return static_cast<std::size_t>(all_kept(tensors)) * sizeof(unsigned);
  }
  return 0;
}

std::unique_ptr<GpuMemory> memory_for(std::size_t bytes) {
  return std::make_unique<GpuMemory>(bytes);
}

template <class T>
std::unique_ptr<GpuMemory> table_of(const std::vector<T>& rows, CUstream_st* stream) {
  auto table = memory_for(rows.size() * sizeof(T));
  if (!rows.empty()) copy_and_wait(table->template as<void>(), rows.data(), rows.size() * sizeof(T), stream);
  return table;
}

// Calls use(levels) with the address of those in a message, of the type that they have there.
template <class Body, class Use>
void with_levels(unsigned levels, Body* body, Use&& use) {
  using Short = std::conditional_t<std::is_const_v<Body>, const unsigned short, unsigned short>;
  using Long = std::conditional_t<std::is_const_v<Body>, const unsigned, unsigned>;
  short_levels(levels) ? use(static_cast<Short*>(body)) : use(static_cast<Long*>(body));
}

// Calls use(format) for a code whose numbers are sent one by one.
template <class Use>
void with_format(Code code, Use&& use) {
  if (code == Code::kFloats) use(Floats{});
  if (code == Code::kBf16) use(Bf16s{});
  if (code == Code::kFp16) use(Fp16s{});
}

}  // namespace

VectorCodec::VectorCodec(Code code, std::span<const CodedTensor> tensors, unsigned levels,
                         CUstream_st* stream)
    : code_(code),
      levels_(levels),
      stream_(stream),
      kept_(all_kept(tensors)),
      header_(header_of(code, tensors)),
      message_bytes_(header_ + body_of(code, tensors, levels)),
      infinite_(sizeof(Count)) {
  const std::vector<Tensor> all = tensors_of(tensors);
  const std::vector<Piece> pieces = pieces_of(tensors);
  tensors_ = static_cast<int>(all.size());
  pieces_ = static_cast<int>(pieces.size());
  tensor_table_ = table_of(all, stream);
  piece_table_ = table_of(pieces, stream);
  partial_ = memory_for(pieces.size() * (sizeof(double) + sizeof(float)));
  rounding_ = memory_for(all.size() * sizeof(Rounding));
  if (code == Code::kTopK) {
    const std::vector<Chunk> chunks = chunks_of(all);
    chunks_ = static_cast<int>(chunks.size());
    chunk_table_ = table_of(chunks, stream);
    chunk_counts_ = memory_for(chunks.size() * sizeof(Count) + sizeof(Count));
    const int searches = chunks.empty() ? 0 : chunks.back().search + 1;
    searches_ = memory_for(static_cast<std::size_t>(searches) * sizeof(Search));
  }
  copy_and_wait(infinite_.as<void>(), &kNever, sizeof kNever, stream_);
}

std::span<std::uint32_t> VectorCodec::drawn(std::uint64_t sequence) {
  Drawn& drawn = drawn_[sequence % MessageBoard::kSlots];
  const auto count = static_cast<std::size_t>(kept_);
  if (drawn.elements == nullptr) {
    drawn.elements =
        std::make_unique<GpuMemory>(count * sizeof(std::uint32_t), GpuMemory::Place::kHost);
  } else {
    drawn.copied.wait();
  }
  return {drawn.elements->as<std::uint32_t>(), count};
}

void VectorCodec::encode(const float* x, std::uint64_t sequence, std::uint64_t key,
                         void* message) {
  if (pieces_ == 0) return;
  const auto blocks = static_cast<unsigned>(pieces_);
  const auto tensors = static_cast<unsigned>(tensors_);
  const auto* pieces = piece_table_->as<const Piece>();
  const auto* table = tensor_table_->as<const Tensor>();
  auto* sums = partial_->as<double>();
  auto* infinite = infinite_.as<Count>();
  auto* numbers = static_cast<float*>(message);
  void* body = static_cast<std::byte*>(message) + header_;
  with_format(code_, [&](auto format) {
    using Format = decltype(format);
    encode_values<Format><<<blocks, kThreads, 0, stream_>>>(
        pieces, x, static_cast<typename Format::Raw*>(body), sequence, infinite);
  });
  if (code_ == Code::kSign) {
    encode_signs<<<blocks, kThreads, 0, stream_>>>(pieces, x, static_cast<unsigned short*>(body),
                                                   sums);
    scale_signs<<<tensors, kThreads, 0, stream_>>>(table, sums, numbers, sequence, infinite);
  } else if (code_ == Code::kQsgd) {
    auto* largest = reinterpret_cast<float*>(sums + pieces_);
    auto* roundings = rounding_->as<Rounding>();
    measure<<<blocks, kThreads, 0, stream_>>>(pieces, x, sums, largest);
    choose_rounding<<<tensors, kThreads, 0, stream_>>>(
        table, sums, largest, levels_, key, roundings, numbers, sequence, infinite);
    with_levels(levels_, body, [&](auto* levels) {
      encode_levels<<<blocks, kThreads, 0, stream_>>>(pieces, table, roundings, x, levels);
    });
  } else if (code_ == Code::kTopK) {
    take_largest(x, sequence, numbers, static_cast<unsigned*>(body));
  } else if (code_ == Code::kRandomK) {
    Drawn& drawn = drawn_[sequence % MessageBoard::kSlots];
    check(cudaMemcpyAsync(body, drawn.elements->as<void>(),
                          static_cast<std::size_t>(kept_) * sizeof(unsigned),
                          cudaMemcpyHostToDevice, stream_),
          "a copy");
    drawn.copied.record(stream_);
    take_drawn<<<tensors, kThreads, 0, stream_>>>(table, x, static_cast<const unsigned*>(body),
                                                  numbers);
    find_infinite<<<blocks, kThreads, 0, stream_>>>(pieces, x, sequence, infinite);
  }
  check_launch("to encode a message");
}

void VectorCodec::take_largest(const float* x, std::uint64_t sequence, float* values,
                               unsigned* elements) {
  const auto* table = tensor_table_->as<const Tensor>();
  auto* infinite = infinite_.as<Count>();
  take_from_small<<<static_cast<unsigned>(tensors_), kWide, 0, stream_>>>(
      table, x, values, elements, sequence, infinite);
  if (chunks_ == 0) return;
  const auto blocks = static_cast<unsigned>(chunks_);
  const auto* chunks = chunk_table_->as<const Chunk>();
  auto* searches = searches_->as<Search>();
  auto* counts = chunk_counts_->as<Count>();
  for (const auto search : {search_largest<0>, search_largest<1>, search_largest<2>}) {
    search<<<blocks, kWide, 0, stream_>>>(chunks, table, x, searches, counts, sequence, infinite);
  }
  auto* next = reinterpret_cast<unsigned*>(counts + chunks_);
  collect_largest<<<blocks, kWide, 0, stream_>>>(chunks, table, x, searches, counts, next, values,
                                                 elements);
}

void VectorCodec::decode(const void* message, float keep, float weight, float* y) {
  if (pieces_ == 0) return;
  const auto blocks = static_cast<unsigned>(pieces_);
  const auto* pieces = piece_table_->as<const Piece>();
  const auto* numbers = static_cast<const float*>(message);
  const void* body = static_cast<const std::byte*>(message) + header_;
  with_format(code_, [&](auto format) {
    using Format = decltype(format);
    decode_values<Format><<<blocks, kThreads, 0, stream_>>>(
        pieces, static_cast<const typename Format::Raw*>(body), keep, weight, y);
  });
  if (code_ == Code::kSign) {
    decode_signs<<<blocks, kThreads, 0, stream_>>>(
        pieces, numbers, static_cast<const unsigned short*>(body), keep, weight, y);
  } else if (code_ == Code::kQsgd) {
    with_levels(levels_, body, [&](auto* levels) {
      decode_levels<<<blocks, kThreads, 0, stream_>>>(pieces, numbers, levels, keep, weight, y);
    });
  } else if (code_ == Code::kTopK || code_ == Code::kRandomK) {
    decode_elements<<<blocks_for(kept_, kThreads), kThreads, 0, stream_>>>(
        static_cast<const unsigned*>(body), numbers, kept_, keep, weight, y);
  }
  check_launch("to decode a message");
}

std::uint64_t VectorCodec::first_infinite() {
  Count first = 0;
  copy_and_wait(&first, infinite_.as<void>(), sizeof first, stream_);
  return first;
}

}  // namespace cohort::kernels
