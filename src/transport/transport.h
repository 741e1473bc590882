// Moves tagged byte messages between the ranks of one group.
//
// Messages with the same (from, to, tag) arrive in the order sent, exactly once or not at all;
// different tags and different senders do not hold each other up. A rank may send to itself. All
// methods may be called from several threads at once; when two threads receive the same (from,
// tag), each message goes to one of them.
//
// A peer that closed, died or stayed silent past the deadline shows as PeerError, whose message
// names it; the transport stays usable towards the others. What a peer sent before it was lost can
// still be received. A rank outside 0 to size() - 1 is the caller's mistake (COHORT_CHECK): numbers
// that came from a peer are checked before they get here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/error.h"
#include "core/types.h"

namespace cohort::transport {

// Tells apart the conversations of one group. Methods use tags below kFirstReservedTag.
using Tag = std::uint32_t;
inline constexpr Tag kFirstReservedTag = 0x8000'0000;  // and above: the collectives

struct Message {
  Rank from = 0;
  Tag tag = 0;
  Bytes payload = {};
};

class Transport {
 public:
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;  // closes

  Rank rank() const { return rank_; }
  int size() const { return size_; }

  // Returns once `payload` may be reused, which may be before the peer has it. Never waits for the
  // peer to call receive: all ranks may send before any receives. May wait for the network, and
  // throws PeerError when that takes past `deadline`, or when the peer or this transport closed.
  virtual void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline deadline) = 0;

  // Waits for the next message from `from`. Throws PeerError at `deadline`, or as soon as nothing
  // more can come because the peer or this transport closed.
  virtual Message receive(Rank from, Tag tag, Deadline deadline) = 0;

  // Waits for the next message with `tag` from any rank, earliest arrival first. Nothing at
  // `deadline`; a lost peer is no error here, since others may still send. Throws PeerError when
  // this transport closed.
  virtual std::optional<Message> receive_any(Tag tag, Deadline deadline) = 0;

  // Takes the next message with `tag` that has already arrived, from any rank, without waiting.
  std::optional<Message> try_receive(Tag tag) { return receive_any(tag, Deadline::min()); }

  // Why nothing more can come from `peer`, which closed ("has closed") or is lost ("is lost: ...");
  // "" while it may. What came before can still be received. Does not wait.
  virtual std::string gone(Rank peer) const = 0;

  // Where lost peers come back: one that has is gone() until this rank readmits it, though it can
  // be written to and heard of, so that nobody takes it for its predecessor.
  virtual void readmit(Rank) {}

  // This rank goes on without the peer, which counts as lost from now on; the link to it is closed
  // after what was sent. Nothing where it is gone().
  virtual void give_up(Rank) {}

  // Leaves the group: every waiting call of this transport throws PeerError, now and later, and
  // the peers that wait for this rank get PeerError instead of its messages. Idempotent.
  virtual void close() = 0;

 protected:
  Transport(Rank rank, int size) : rank_(rank), size_(size) {}

  void check_rank(Rank rank) const {
    COHORT_CHECK(rank >= 0 && rank < size_,
                 "no rank " + std::to_string(rank) + " in a group of " + std::to_string(size_));
  }

 private:
  const Rank rank_;
  const int size_;
};

}  // namespace cohort::transport
