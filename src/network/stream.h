// Bytes there and back over one connection, never waiting: plain, or encrypted by TLS.
//
// Used from one thread. Whoever has the descriptor waits until it is ready and tries again.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "network/identity.h"

namespace cohort::network {

struct IoResult {
  enum class Status {
    kDone,       // `bytes` were moved
    kWantRead,   // nothing was moved; again when the descriptor is readable
    kWantWrite,  // or writable
    kEnd,        // the peer has closed
    kFailed,     // Stream::failure() says why
  };
  Status status = Status::kDone;
  std::size_t bytes = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;  // does not close the descriptor

  // What must pass before the first byte: nothing, or TLS's own handshake.
  virtual IoResult handshake() = 0;

  // Into `first`, then `second`; together not empty. Fewer bytes than would have fitted: there are
  // no more for now.
  virtual IoResult read(std::span<std::byte> first, std::span<std::byte> second) = 0;

  // Before a wait to read: so many bytes are sure to come, and nothing can be done with fewer.
  virtual void expect(std::size_t bytes) = 0;

  // From the front of `pieces`. What was taken may still be here and not with the system: as long
  // as there is something unsent(), write() is to be called again, be it with nothing.
  virtual IoResult write(std::span<const iovec> pieces) = 0;
  virtual std::size_t unsent() const = 0;

  virtual std::string failure() const = 0;
  // Whether that is a matter of trust, be it ours or the peer's, and not of the network.
  bool distrusted() const { return distrusted_; }

  // Whether bytes that were changed on the way are noticed here.
  bool protects() const { return protects_; }

  // Who the peer is by its certificate, if it has shown one.
  const std::optional<Identity>& certified() const { return certified_; }

  // What the system took and gave so far, the handshake and all that TLS adds included.
  std::uint64_t wire_sent() const { return wire_sent_; }
  std::uint64_t wire_received() const { return wire_received_; }

 protected:
  explicit Stream(bool protects) : protects_(protects) {}

  const bool protects_;
  bool distrusted_ = false;
  std::optional<Identity> certified_;
  std::uint64_t wire_sent_ = 0;
  std::uint64_t wire_received_ = 0;
};

// `protects`: of a Unix socket, which no one between can change.
std::unique_ptr<Stream> make_plain_stream(int descriptor, bool protects);

}  // namespace cohort::network
