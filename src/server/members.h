// What a parameter server knows of each worker of the job: the roster's row, and its pushes and
// pulls.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/aligned_vector.h"
#include "core/clock.h"
#include "core/types.h"
#include "membership/member.h"
#include "server/messages.h"

namespace cohort::server {

// What became of a push.
struct PushAnswer {
  enum class Kind { kApplied, kDropped, kRejected };
  Kind kind = Kind::kApplied;
  std::uint64_t staleness = 0;
  std::vector<Rank> workers = {};  // kSync: of its round
  std::string reason = {};         // of a rejection
};

// The push that is coming in, or is whole and waits for its round. The memory is given out to
// receive into, so it is never moved nor freed.
struct StagedPush {
  AlignedVector<float> gradients = {};  // of the arena's size from the first push on
  std::uint64_t sequence = 0;
  std::uint32_t detail = 0;  // of its frames
  std::uint64_t base = 0;    // the version it was computed at
  std::int64_t arrived = 0;  // elements
  bool finite = true;
  bool whole = false;

  std::uint64_t cleared = 0;  // how often

  void clear() { arrived = 0, whole = false, finite = true, ++cleared; }
};

// kSync, after a restart: "my next push was made into a round by these".
struct Announcement {
  std::uint64_t base = 0;
  std::vector<Rank> workers = {};
};

// What is remembered of an incarnation that was replaced: its worker may still ask.
struct PastIncarnation {
  std::uint64_t incarnation = 0;
  std::uint64_t applied = 0;
  bool in_model = false;  // the last of these
};
inline constexpr std::size_t kPastIncarnations = 64;  // of a worker; older ones are forgotten

struct WaitingPull {
  std::uint64_t id = 0;
  std::uint32_t which = 0;
  std::uint64_t after = 0;  // the push that has to be answered before
  Deadline since = {};
  std::size_t early = 0;                        // elements that were sent ahead of time
  std::optional<std::uint64_t> stands_at = {};  // the version whose values these are
};

// Values that are being sent, as fast as the connection takes them: there is something left to
// send.
struct Reading {
  std::uint64_t id = 0;  // of the pull
  std::uint32_t which = 0;
  std::uint64_t version = 0;
  std::size_t place = 0;  // elements that were sent
};

// After a restart: what a worker brings again.
struct Replay {
  bool returned = false;    // with its incarnation, since this server started
  std::uint64_t to = 0;     // it will repeat its pushes up to this one
  Deadline since = {};      // when it could begin, or went on, with that
  std::uint64_t holds = 0;  // kSync: the newest version that it had pulled when it joined
  std::optional<Announcement> announcement = {};
};

struct Member : membership::MemberRow {
  std::uint64_t applied = 0;   // pushes of this incarnation that have been dealt with
  std::uint64_t durable = 0;   // of these, on disk
  std::uint64_t progress = 0;  // pushes in the model, of all incarnations
  std::uint64_t clock = 0;     // kBounded: steps taken
  PushAnswer answer = {};      // to the push number `applied`
  std::vector<PastIncarnation> past = {};

  StagedPush push = {};
  std::optional<WaitingPull> pull = {};
  std::optional<Reading> reading = {};
  bool ended = false;  // was told that all others are done, and has pushed nothing since
  std::vector<float> pulled = {};  // delay compensation: what it pulled last; empty: nothing yet

  Replay replay = {};

  // Waits for the others to end, or has: it will push nothing more, and nobody waits for it.
  // With a push that waits for its round it is still one of that round.
  bool done() const { return !push.whole && (ended || (pull && pull->which == kPullWhenAlone)); }
  bool replays() const { return live() && applied < replay.to; }
  // Has sent all that it has to push, and waits.
  bool only_pulls() const { return pull && pull->after <= applied; }
  // Its connection is gone.
  void disconnect();
  // It has a new incarnation, `former` before.
  void renew(std::uint64_t former);
};

class Members {
 public:
  explicit Members(int workers);

  std::vector<Member>& all() { return members_; }
  const std::vector<Member>& all() const { return members_; }
  Member& at(Rank worker) { return members_[static_cast<std::size_t>(worker)]; }
  const Member& at(Rank worker) const { return members_[static_cast<std::size_t>(worker)]; }
  std::vector<membership::MemberRow*> rows();
  bool has(Rank worker) const {
    return worker >= 0 && static_cast<std::size_t>(worker) < members_.size();
  }

  int training() const;  // live, and not done
  // The smallest clock of the live members, but for `without`; nothing when there is none.
  std::optional<std::uint64_t> min_clock(Rank without = -1) const;

 private:
  std::vector<Member> members_;
};

}  // namespace cohort::server
