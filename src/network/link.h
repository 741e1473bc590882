// An established connection between two processes of a job, as a stream of frames.
//
// Everything happens on the one thread that runs the link's io_context: calls, and calls back. A
// link begins where the handshake has ended: both sides know who the other is.
//
// Both ends send a heartbeat when they have nothing else to send; an end that has heard nothing,
// not a byte, for `silence` gives the other up. Bytes beyond a frame's bound, a wrong checksum, a
// frame of another job or an unknown connection type end the link with a reason: there is no
// resynchronisation.
//
// Between processes of one host payloads of at least kRingPayload bytes go through shared memory,
// if both ends could set it up; frames and order are the same.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/traffic.h"
#include "network/frame.h"
#include "network/identity.h"

namespace cohort::network {

class Link;
class LinkCore;
struct LinkParts;

// Who uses the link. Called from the event loop alone, never from within a call of the link's. A
// method that throws PeerError, or another std::exception, ends the link with its message as the
// reason; nothing else of the process is touched.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;

  // The header of a frame that is about to come: where its `header.length` bytes are to be put, so
  // that nothing is copied twice. Nothing: frame_arrived() gets them where they happen to be.
  virtual std::optional<std::span<std::byte>> place_for(Link& link, const FrameHeader& header) = 0;

  // `payload` is what place_for() named, or memory valid during the call, which may be shared with
  // the peer: read each byte of it once, or copy it before it is judged.
  virtual void frame_arrived(Link& link, const FrameHeader& header,
                             std::span<const std::byte> payload) = 0;

  // All has been taken by the system, or has come into the shared memory. Comes sooner or later
  // after a send() that left something unsent; may come without one.
  virtual void all_sent(Link&) {}

  // Once, and nothing after it. The link must not be destroyed from within; post() that.
  virtual void link_lost(Link& link, const std::string& reason) = 0;
};

struct LinkOptions {
  std::chrono::milliseconds silence = std::chrono::seconds(3);
  // Bytes that are copied and kept for a peer that does not read. What was lent does not count, nor
  // when it has had to be copied.
  std::size_t max_unsent = std::size_t{1} << 30;
  std::shared_ptr<TrafficMeter> meter = nullptr;  // several links may share one
};

// The reason for link_lost() where the peer has said goodbye.
inline constexpr const char* kSaidGoodbye = "closed";

// Shorter payloads, and longer ones than kRingLongest, go by the socket even where there is shared
// memory.
inline constexpr std::size_t kRingPayload = 4096;
inline constexpr std::size_t kRingLongest = 512 << 10;
constexpr bool fits_ring(std::size_t length) {
  return length >= kRingPayload && length <= kRingLongest;
}

enum class Kept {
  kCopy,  // what the peer does not take at once is copied
  kLent,  // the caller leaves the bytes unchanged until they are sent, or calls copy_lent() before
};

class Link {
 public:
  explicit Link(LinkParts parts);
  // Closes without a word; after close_after_sending() as that says, as long as the io_context runs
  // (what was lent is copied).
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const Identity& peer() const;
  // "worker 3 at 10.0.0.7:40112" or "server 0 by shared memory"
  std::string peer_text() const;
  std::uint16_t lane() const;  // what the one that connected said it is for

  // Whether it is a process of this host.
  bool local() const;
  // What something long is best cut into: while one piece is copied at one end, the one before it
  // is at the other.
  std::size_t piece_bytes() const;

  void set_handler(LinkHandler& handler);  // before which nothing is read

  // `header.length` and `header.checksum` are filled in, `header.job` too. The payload may be given
  // in two parts, sent as one. A link that is lost, or has more than max_unsent unsent, drops the
  // frame and says so by link_lost().
  void send(FrameHeader header, std::span<const std::byte> payload, Kept kept = Kept::kCopy,
            std::span<const std::byte> second = {});

  // A frame without a payload, ahead of all that have not begun to be sent.
  void send_ahead(FrameHeader header);

  // Memory that was lent, some of it or all, is about to change.
  void copy_lent(std::span<const std::byte> memory);
  std::size_t unsent() const;

  // Tells the peer that nothing more comes, sends what is unsent, then closes; what still arrives
  // is thrown away. link_lost() is called at the peer with kSaidGoodbye, not here.
  void close_after_sending();

  // When the last byte came, of a frame or a heartbeat.
  Clock::time_point last_heard() const;

  // Payload and header bytes so far.
  std::uint64_t bytes_sent() const;
  std::uint64_t bytes_received() const;

 private:
  std::shared_ptr<LinkCore> core_;
};

}  // namespace cohort::network
