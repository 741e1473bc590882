// Connects to a listener of the same job.
//
// Processes start in any order: connecting is tried again, with pauses that grow to kRetryPause,
// until it succeeds, the deadline passes, or the peer says that this process is not welcome, ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "network/link.h"

namespace boost::asio {
class io_context;
}

namespace cohort::network {

inline constexpr std::chrono::milliseconds kRetryPause{200};

struct ConnectorOptions {
  Address address;
  Identity self;
  Identity peer;           // whom to expect there; another is refused
  std::uint16_t lane = 0;  // what for, as the listener's user knows it
  std::string note = {};   // for that user; at most kMaxNoteBytes
  Credentials credentials = {};
  LinkOptions links = {};
  std::string runtime_folder = {};  // where a Unix socket is looked for first; empty: nowhere
  bool shared_memory = true;
  // The peer has been there before and may be starting again: whoever answers meanwhile without
  // being able to prove who it is has taken its address, and is no reason to give up.
  bool returning = false;
  std::chrono::milliseconds first_pause = {};  // before the first attempt
};

// Why there is no link.
struct ConnectFailure {
  enum class Kind {
    kDeadline,  // nobody answered, or not properly
    kRefused,   // the peer said why it will not have us; trying again is of no use
  };
  Kind kind = Kind::kDeadline;
  std::string reason;  // names the peer, the address and the last obstacle
};

class Connector {
 public:
  virtual ~Connector() = default;  // gives up without a call back

  virtual std::string obstacle() const = 0;  // why it has not come off yet, for people
};

// Exactly one of the two is called, from the io_context's thread. Throws ConfigError when the
// address may not be used without credentials, or the note is too long.
std::unique_ptr<Connector> connect(boost::asio::io_context& io, const ConnectorOptions& options,
                                   Deadline deadline,
                                   std::function<void(std::unique_ptr<Link>)> connected,
                                   std::function<void(const ConnectFailure&)> failed);

}  // namespace cohort::network
