// Cuts the bytes of a connection into frames. No sockets: whoever has one asks where bytes are to
// go, puts them there and says how many.
//
// Payloads are read straight to where the sink wants them. The bytes that happen to come with a
// header are copied, at most kReadBuffer of them a payload.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/frame.h"
#include "network/ring.h"

namespace cohort::network {

inline constexpr std::size_t kReadBuffer = 32 << 10;

// Where frames go. What it throws passes through the reader, which must not be used afterwards.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // As LinkHandler's, but for the frames of the connection itself too, which have no place.
  virtual std::optional<std::span<std::byte>> place_for(const FrameHeader& header) = 0;
  // Whether more frames are wanted.
  virtual bool frame_arrived(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  // The writer of the ring waits to be told that there is room.
  virtual void ring_has_room() = 0;
};

class FrameReader {
 public:
  // `checksums`: whether payloads carry one. `ring`: where payloads are that fits_ring(); may be
  // null, and outlives the reader.
  FrameReader(const JobId& job, bool checksums, RingReader* ring);

  // Where the next bytes of the connection belong, in this order. Together never empty.
  std::array<std::span<std::byte>, 2> room();

  // How many bytes are sure to come, at least 1.
  std::size_t awaited() const { return std::max<std::size_t>(1, place_.size() - placed_); }

  // The place that was named for the payload that is coming is no more.
  void forget_place();

  // `bytes` were put there. Why nothing after them can be trusted, if so.
  std::optional<std::string> accept(std::size_t bytes, FrameSink& sink);

 private:
  // Systems copy twice as fast between places that are equally far from a multiple of 64.
  struct alignas(64) Buffer {
    std::byte bytes[kReadBuffer];
  };
  enum class Next { kMore, kWait, kEnough };

  Next next_frame(FrameSink& sink);
  Next begin_payload(FrameSink& sink);
  Next take_from_ring(FrameSink& sink);
  Next finish(std::span<const std::byte> payload, FrameSink& sink);
  std::span<const std::byte> buffered() const;

  JobId job_;
  bool checksums_;
  RingReader* ring_;
  std::unique_ptr<Buffer> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::optional<FrameHeader> header_;  // of the payload that is awaited
  std::span<std::byte> place_ = {};    // of that payload, when it is not awaited in the buffer
  std::size_t placed_ = 0;             // bytes of it that are there
  std::uint32_t sum_ = 0;              // their checksum
  std::size_t padding_ = 0;            // bytes before the next header that mean nothing
  std::vector<std::byte> spare_ = {};  // the place for those that have none
  std::optional<std::string> refusal_ = {};
};

}  // namespace cohort::network
