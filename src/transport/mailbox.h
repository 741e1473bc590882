// What has arrived for one rank of a group, by sender and tag.
//
// Has no bound: put() never waits. Every mailbox keeps its own note of who is gone, so that a
// waiting rank needs one lock and one condition only. May be used from several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/transport.h"

namespace cohort::transport {

// Why a rank is gone: it left in good order, or this one gave it up.
inline constexpr const char* kClosed = "has closed";
inline constexpr const char* kGivenUp = "is lost: the others go on without it";

class Mailbox {
 public:
  // `names`: what messages call the ranks, by rank; "rank 3" where it has no entry.
  Mailbox(Rank owner, int size, std::vector<std::string> names = {});

  // False when the owner or the sender is gone.
  bool put(Message message);

  // As Transport's methods of the same names.
  Message receive(Rank from, Tag tag, Deadline deadline);
  std::optional<Message> receive_any(Tag tag, Deadline deadline);

  // Nothing more comes from `rank`; what did can still be received. When it is the owner, every
  // call throws from now on. Of several reasons the first counts.
  void note_gone(Rank rank, const std::string& reason = kClosed);

  // Another one has come in the place of a rank that is gone. What it sends can be received, and of
  // its predecessor nothing any more; but it counts as gone until it is readmitted.
  void note_returned(Rank rank);
  void readmit(Rank rank);
  bool can_send_to(Rank rank) const;

  // Why a rank is gone, or "".
  std::string gone(Rank rank) const;

  void clear();

  std::string name(Rank rank) const;

 private:
  struct Envelope {
    std::uint64_t arrival;
    Bytes payload;
  };
  using Queue = std::deque<Envelope>;

  bool pop(Message& wanted);
  bool pop_earliest(Message& wanted);
  std::string label() const { return name(owner_) + ": "; }

  const Rank owner_;
  const std::vector<std::string> names_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable arrived_;
  std::unordered_map<std::uint64_t, Queue> queues_;  // none is empty
  std::uint64_t next_arrival_ = 0;
  std::vector<std::string> gone_;  // by rank: why
  std::vector<bool> back_;         // by rank: gone, and returned
};

}  // namespace cohort::transport
