// Ranks as processes of any hosts: messages over links (network/link.h), one between every two.
//
// A process has one node: one listener, one thread that serves all links, and on it lanes. A lane
// is a group with links of its own, so that what is sent on one lane does not wait for what is sent
// on another. Of two processes the one with the higher number connects. Between processes of one
// host the links use shared memory by themselves.
//
// Messages longer than a frame are cut and put together again, straight in the memory that the
// receiver gets. send() of a short message copies it and returns; of a long one it returns when the
// link has taken it all, so that no more than a few MiB wait for a slow peer. A lost link shows as
// PeerError with the link's reason; what came before can still be received. Where a lane says so, a
// lost member may come back, to be readmitted; what its predecessor sent is forgotten then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "network/link.h"
#include "transport/transport.h"

namespace cohort::transport {

inline constexpr std::uint64_t kTcpMaxMessage = std::uint64_t{1} << 32;
inline constexpr int kTcpLanes = 8;  // of a node

struct TcpNodeOptions {
  network::JobId job = {};
  Rank rank = 0;  // of this process, among
  int size = 1;
  network::Address listen = {.host = "127.0.0.1"};
  network::Credentials credentials = {};
  network::LinkOptions links = {};
  std::string runtime_folder = {};  // of this user alone, for Unix sockets; empty: none
  bool shared_memory = true;
  std::function<void(const std::string&)> log = nullptr;  // a line; from the node's thread
};

// The same in all its members, but for `addresses`, of which each needs those below its own, the
// introduction, and the call back.
struct TcpLane {
  int number = 0;  // below kTcpLanes; each once
  std::vector<Rank> members = {};
  std::vector<network::Address> addresses = {};  // by member
  std::vector<std::string> names = {};  // by member, for messages; "rank 3" where there is none
  bool star = false;                    // links with the first member only
  std::string agreement = {};           // "4 processes", a line: who says otherwise is refused
  std::string introduction = {};        // what this member tells those it connects to
  bool returns = false;  // a member that was lost may come back: do not stop_listening()
  bool late = false;     // this member does so: all are lost to it until it calls them
  std::function<void(const std::string& whom)> waiting = nullptr;  // once, after kTcpSayAfter
};

inline constexpr std::chrono::seconds kTcpSayAfter{3};

class TcpTransport : public Transport {
 public:
  // Why a peer is lost; "" while it is there, and after it closed in good order.
  virtual std::string lost(Rank peer) const = 0;

  // What a member that connected to this one said of itself then: one with a higher number.
  virtual std::string introduction(Rank peer) const = 0;

  // Of a member that came late: reaches another one, where it listens now. Whether it did so by
  // `deadline`; until then that member is lost.
  virtual bool call(Rank peer, const network::Address& address, Deadline deadline) = 0;
  // The same for whichever member listens there, which it returns. Throws PeerError when none
  // answers, ConfigError when it says that this one is not welcome.
  virtual Rank call_anyone(const network::Address& address, Deadline deadline) = 0;

 protected:
  using Transport::Transport;
};

class TcpCore;  // tcp_core.h

class TcpNode {
 public:
  // Listens. Throws ConfigError when it cannot, or must not without credentials.
  explicit TcpNode(const TcpNodeOptions& options);
  TcpNode(const TcpNode&) = delete;
  TcpNode& operator=(const TcpNode&) = delete;
  ~TcpNode();  // transports that it made go on

  const network::Address& address() const;  // with the port that was really taken

  // The members' own calls may come in any order and at any time before their deadlines. A member's
  // rank in the transport is its place in `members`. Throws PeerError that names those who did not
  // come, ConfigError when another process says that this one is not welcome.
  //
  // Transports may be destroyed in any order. The destructor, and that of the last of a node, waits
  // up to 2 s until the peers have what was sent.
  std::unique_ptr<TcpTransport> connect(const TcpLane& lane, Deadline deadline);

  // Listens at one more address, in the place of a process that has ended. False when it cannot.
  bool listen_also(const network::Address& address);

  // After the last lane, nobody else may come in: who tries is told why, or there is no door.
  void admit_nobody(const std::string& why);
  void stop_listening();

 private:
  std::shared_ptr<TcpCore> core_;
};

// A group in this process, over loopback: for tests and comparisons. Throws ConfigError unless
// size >= 1.
std::vector<std::unique_ptr<Transport>> make_tcp_group(int size);

}  // namespace cohort::transport
