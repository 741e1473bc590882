// How the memory that processes share is laid out: the board, then channel after channel; and what
// is where in it. For process_owner.h and process_channel.h alone.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "collectives/barrier.h"
#include "collectives/chunks.h"
#include "collectives/presence.h"
#include "collectives/process_board.h"
#include "collectives/sizes.h"
#include "collectives/sum.h"
#include "core/types.h"

namespace cohort::collectives::process_layout {

inline constexpr std::size_t kChunkBytes = std::size_t{512} * 1024;
// From so many bytes on it pays to write past the caches, and from so many on it depends.
inline constexpr std::size_t kStreamBytes = std::size_t{3} * 1024;
inline constexpr std::uint32_t kTimedEvery = 16;  // operations of which one is timed
inline constexpr std::size_t kChoiceBytes = std::size_t{128} * 1024;
inline constexpr std::size_t kDirectBytes = std::size_t{2} << 20;
inline constexpr std::size_t kDirectRoom =
    std::size_t{256} * 1024;  // for what is read of all others
inline constexpr std::int64_t kChunkFloats = kChunkBytes / sizeof(float);
inline constexpr std::size_t kMaxGathered = std::size_t{1} << 32;  // a longer length is damage

enum class Kind : std::uint32_t { kAllReduce, kAllGather, kBroadcast, kBarrier };

inline const char* kind_name(std::uint32_t kind) {
  constexpr std::array kNames{"all_reduce", "all_gather", "broadcast", "barrier"};
  return kind < kNames.size() ? kNames[kind] : "something unknown";
}

// What a member gives in place of the address of its buffer when the others are not to read it.
enum Refusal : std::uint64_t { kStaged, kStreamed, kNoRefusal };

// What a member brings to an operation.
struct Arrival {
  std::atomic<std::uint32_t> kind;
  std::atomic<Rank> root;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> address;  // of its buffer in its own memory, or a Refusal
};

struct alignas(kCacheLine) Seat {
  Presence presence;
  std::atomic<std::uint32_t> awaited;  // one more than the last barrier it came to
  Arrival arrivals[2];                 // of operations by turns
};

static_assert(sizeof(Seat) == kCacheLine);

// The head of a channel in the shared memory; zeros are a new one. Seats and buffers follow.
struct alignas(kCacheLine) ChannelHead {
  alignas(kCacheLine) Barrier barrier;
  alignas(kCacheLine) FailureNote note;
};

// Where the parts are.
class Layout {
 public:
  Layout(const ProcessBoard::Ranks& ranks, int channels)
      : size_(ranks.size()), channels_(channels), board_(aligned(ProcessBoard::bytes(ranks))) {}

  std::size_t bytes() const { return board_ + channels_ * channel_bytes(); }
  std::size_t channel(int index) const { return board_ + index * channel_bytes(); }
  std::size_t seat(int member) const { return sizeof(ChannelHead) + member * sizeof(Seat); }
  std::size_t small(int member, std::uint32_t turn) const {
    return seat(size()) + (turn % 2 * size_ + member) * kSmallBytes;
  }
  std::size_t slot(int member, std::uint64_t turn) const {
    return small(0, 0) + 2 * size_ * kSmallBytes + (turn % 2 * size_ + member) * kChunkBytes;
  }
  std::size_t result(std::uint64_t turn) const {
    return slot(0, 0) + (2 * size_ + turn % 2) * kChunkBytes;
  }
  int size() const { return static_cast<int>(size_); }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
  std::size_t channel_bytes() const { return aligned(result(1) + kChunkBytes); }

  std::size_t size_;
  std::size_t channels_;
  std::size_t board_;
};

// Part `part` of a chunk; all but the last begin at a cache line.
inline Range part_of(std::int64_t numel, int parts, int part) {
  constexpr std::int64_t kLine = kCacheLine / sizeof(float);
  const Range lines = chunk_of((numel + kLine - 1) / kLine, parts, part);
  const std::int64_t begin = std::min(numel, lines.begin * kLine);
  return {begin, std::min(numel, lines.end() * kLine) - begin};
}

// To where other processes read.
inline void copy_out_to(float* place, std::span<const float> values, bool streamed) {
  if (streamed) {
    copy_past_caches(values.data(), place, static_cast<std::int64_t>(values.size()));
  } else if (!values.empty()) {
    std::memcpy(place, values.data(), values.size_bytes());
  }
}

}  // namespace cohort::collectives::process_layout
