// Frames that are to be sent, in order, as far as they have not been. No sockets: whoever has one
// asks for the next bytes, writes what it can and says how many it were.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "network/frame.h"
#include "network/link.h"
#include "network/ring.h"

namespace cohort::network {

class SendQueue {
 public:
  // `checksums`: whether payloads get one. `ring`: through which payloads go that fits_ring(); may
  // be null, and outlives the queue.
  SendQueue(bool checksums, RingWriter* ring) : checksums_(checksums), ring_(ring) {}

  // The parts of the payload stay where they are until they are sent or keep() copies them.
  // Returns how many bytes the frame has.
  std::size_t push(const FrameHeader& header, std::span<const std::byte> first,
                   std::span<const std::byte> second);

  // A frame without a payload that overtakes all that have not begun to be sent: what keeps the
  // connection going must not wait for room in the ring.
  void push_first(const FrameHeader& header);

  // What the last push() left unsent: copied now, or lent, which is copied when copy_lent() asks.
  void keep(Kept kept);
  void copy_lent();
  void copy_lent(std::span<const std::byte> memory);  // only what lies there

  // The next bytes, in up to out.size() pieces; none when all is sent, or when the ring is full
  // (ring_is_full()). Throws PeerError when the reader of the ring cannot be believed.
  std::span<const iovec> next(std::span<iovec> out);
  void sent(std::size_t bytes);
  void clear();

  bool ring_is_full() const { return ring_is_full_; }
  bool empty() const { return frames_.empty(); }
  std::size_t bytes() const { return bytes_; }                // unsent, headers and payloads
  std::size_t copied_bytes() const { return copied_bytes_; }  // of payloads that nobody lent

 private:
  struct Frame {
    FrameHeader meaning;  // of the header, until it is encoded
    bool encoded = false;
    std::array<std::byte, kFrameHeaderBytes> header;
    std::array<std::span<const std::byte>, 2> parts;  // of the payload, for the socket or the ring
    std::size_t padding = 0;                          // after them
    std::size_t sent = 0;                             // of all these together
    bool for_ring = false;                            // its parts are not in the ring yet
    bool lent = true;
    std::unique_ptr<std::byte[]> copy = {};
    std::size_t counted = 0;  // bytes of it, where nobody lent them

    std::size_t size() const { return header.size() + parts[0].size() + parts[1].size() + padding; }
  };

  std::size_t take_copy(Frame& frame);
  void drop_copy(Frame& frame);
  void encode_header(Frame& frame) const;
  bool put_into_ring(Frame& frame);

  bool checksums_;
  RingWriter* ring_;
  std::deque<Frame> frames_ = {};
  std::size_t bytes_ = 0;
  std::size_t copied_bytes_ = 0;
  std::size_t lent_frames_ = 0;
  bool ring_is_full_ = false;
};

}  // namespace cohort::network
