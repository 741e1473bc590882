// Accepts connections of one job's processes, and nobody else's.
//
// The one way in: every connection, whatever its kind, passes the same few steps before anyone else
// sees a byte of it. Until a peer has proved that it belongs to the job it costs at most
// kStrangerBytes and one of kStrangers places (the oldest gives way), and kStrangerTime; it is sent
// nothing but what TLS itself says. A peer that knows the job but is not welcome (version, role,
// rank) is told why. Every refusal is counted and logged, with at most one line a second and kind.
//
// A listener at a loopback port also listens at a Unix socket named after the port, in a folder of
// this user alone, which processes of this host prefer (connector.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "network/link.h"

namespace boost::asio {
class io_context;
}

namespace cohort::network {

struct Greeting;  // handshake.h

inline constexpr std::size_t kStrangers = 64;
inline constexpr std::size_t kStrangerBytes = 16 << 10;
inline constexpr std::chrono::seconds kStrangerTime{3};

struct ListenerOptions {
  Address address;
  Identity self;  // whom the others will see here
  Credentials credentials = {};
  LinkOptions links = {};
  std::string runtime_folder = {};  // of this user alone, for Unix sockets; empty: none
  bool shared_memory = true;        // false: payloads through the socket, for comparisons
};

// Why connections were refused, and how often.
using Refusals = std::map<std::string, std::uint64_t>;

class Listener {
 public:
  virtual ~Listener() = default;

  // With the port that was really taken.
  virtual const Address& address() const = 0;
  virtual const Refusals& refusals() const = 0;
  // Stops accepting; links that exist go on.
  virtual void stop() = 0;
};

// Why a peer may not come in; none when there is no reason.
struct Objection {
  std::string reason = {};
  bool later = false;  // it is to try again soon, and will: this process is not ready for it
};

// The listener must not be destroyed from within these.
struct ListenerEvents {
  // Of a peer that has proved that it belongs to the job. It is accepted() right after, or not.
  std::function<Objection(const Greeting&)> admit;
  // An established link. Set its handler at once.
  std::function<void(std::unique_ptr<Link>)> accepted;
  // A line for the log.
  std::function<void(const std::string&)> log;
};

// Throws ConfigError when the address is taken, is none of this host's, or may not be used without
// credentials.
std::unique_ptr<Listener> listen(boost::asio::io_context& io, const ListenerOptions& options,
                                 ListenerEvents events);

}  // namespace cohort::network
