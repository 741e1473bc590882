// Payloads from one process to another through memory both have mapped: one writer, one reader.
//
// Which payload lies where is not said in the memory: both ends count, from the lengths in the
// frame headers, which come by the socket after the payload is in place. All that a ring shares
// besides payloads is how much the reader is done with, and whether the writer waits for more of
// that. Each end believes nothing that it cannot check, and looks at nothing twice: a peer gone mad
// can spoil what is said, not the memory of the process that listens.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::network {

inline constexpr std::size_t kRingAlignment = 64;  // of every payload in the ring

// What the two ends share besides payloads. All zero at first.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> released;  // by the reader: bytes it is done with
  alignas(64) std::atomic<std::uint32_t> waiting;   // by the writer: 1 while it waits for room
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The end that puts payloads in. `data` is a multiple of kRingAlignment long and at least twice as
// long as the longest payload.
class RingWriter {
 public:
  RingWriter(RingControl& control, std::span<std::byte> data) : control_(&control), data_(data) {}

  enum class Put {
    kDone,
    kFull,    // the reader will say when there is room (RingReader::release)
    kBroken,  // the reader claims what cannot be
  };
  // Copies the two parts, one after the other.
  Put put(std::span<const std::byte> first, std::span<const std::byte> second);

 private:
  RingControl* control_;
  std::span<std::byte> data_;
  std::uint64_t written_ = 0;   // bytes given out, gaps at the end of the ring among them
  std::uint64_t released_ = 0;  // the last that the reader said
};

// The end that takes payloads out, in the order they were put in.
class RingReader {
 public:
  RingReader(RingControl& control, std::span<const std::byte> data)
      : control_(&control), data_(data) {}

  // The next payload, of `length` bytes, which is at most half the ring. The peer could still write
  // there: read each byte once.
  std::span<const std::byte> take(std::size_t length);

  // The memory of all that was taken may be used again. Whether the writer waits to be told so.
  bool release();

 private:
  RingControl* control_;
  std::span<const std::byte> data_;
  std::uint64_t taken_ = 0;
};

}  // namespace cohort::network
