// What a server says to its roster (roster.h), and what the roster asks of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "membership/member.h"
#include "membership/membership_counters.h"
#include "membership/messages.h"
#include "network/frame.h"

namespace cohort::membership {

struct MembershipOptions {
  std::chrono::nanoseconds evict_after = std::chrono::milliseconds(2500);
  // How long a place whose connection has ended is kept from a new process.
  std::chrono::nanoseconds evict_unconnected = std::chrono::milliseconds(500);
  // How long members are waited for after a restart. Longer than a worker takes to notice that the
  // server had gone without a word.
  std::chrono::nanoseconds return_within = std::chrono::seconds(5);
  std::chrono::nanoseconds idle_exit = std::chrono::minutes(10);  // without any worker
  // How long one that has never joined is waited for when all others are done; and a server that
  // was started again waits for workers of a job that had ended.
  std::chrono::nanoseconds late_start = std::chrono::seconds(30);
  std::function<void(const std::string&)> log = {};  // a line for people; must not call back
};

// In what servers differ.
struct MembershipRules {
  Conversation conversation = Conversation::kParameters;
  // 0: incarnations count up, and the owner has each on disk before it is told. Else they are
  // random numbers of this seed, another at every start.
  Seed incarnations = 0;
  bool evicted_may_return = false;  // with the incarnation they had, while nobody has their place
  bool all_must_end = true;  // over when all are done or failed; else when some have left and
                             // nobody is there, or can be expected
};

// What a roster does to the world and to its owner's rows. Called from within its methods.
class RosterOwner {
 public:
  virtual ~RosterOwner() = default;
  virtual void send_frame(ConnectionId to, const network::FrameHeader& header,
                          std::span<const std::byte> payload) = 0;
  // Closes after what was sent has gone out. The roster forgets the connection at once.
  virtual void close_connection(ConnectionId connection, const std::string& reason) = 0;
  // The row has no connection any more: nothing is under way on it.
  virtual void disconnected(MemberRow& row) = 0;
  // What the incarnation has pushed is all that there is of it: it is evicted, or another process
  // takes its place. The row still shows what it was.
  virtual void incarnation_ends(MemberRow& row) = 0;
  // The row has a new incarnation, `former` before. The snapshot that has to be on disk before the
  // worker is told; 0: none.
  virtual std::uint64_t joining(MemberRow& row, std::uint64_t former) = 0;
  virtual void joined(MemberRow& row) = 0;   // present: tell it
  virtual void evicted(MemberRow& row) = 0;  // is what it is after incarnation_ends()
};

}  // namespace cohort::membership
