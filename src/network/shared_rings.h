// Memory that two processes share: a ring of payloads each way.
//
// The end that listens makes it, without a name in any file system, sealed so that no one can cut
// it off under the other's feet, and sends its descriptor along with the welcome.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "network/link.h"
#include "network/ring.h"
#include "network/sockets.h"
#include "network/stream.h"

namespace cohort::network {

// Twice the longest payload and no more: the rings of several connections should fit the caches.
inline constexpr std::size_t kRingBytes = 2 * kRingLongest;

class SharedRings {
 public:
  // Null when the system will not give any; `descriptor` is what to send to the peer.
  static std::unique_ptr<SharedRings> create(Descriptor& descriptor);
  // Of the end that connects. Null when it is not such memory, or can still change its size.
  static std::unique_ptr<SharedRings> attach(const Descriptor& descriptor);

  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();

  RingWriter& writer() { return writer_; }
  RingReader& reader() { return reader_; }

 private:
  SharedRings(std::byte* memory, bool listens);

  std::byte* memory_;
  RingWriter writer_;
  RingReader reader_;
};

// All of `bytes` with `descriptor` along, or false.
bool send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor);

// As Stream::read; a descriptor that comes along is put into `received`, in which at most one ends
// up.
IoResult receive_with_descriptor(int socket, std::span<std::byte> into, Descriptor& received);

}  // namespace cohort::network
