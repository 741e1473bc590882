// Who takes part, as one server sees it: a row for every worker of the job.
//
// A worker is known by (rank, incarnation). Only the current incarnation of a rank counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/aligned_vector.h"
#include "core/clock.h"
#include "core/types.h"
#include "server/messages.h"

namespace cohort {

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

struct Member {
  enum class Presence {
    kNever,    // has not joined yet
    kJoining,  // its incarnation is being written to disk
    kAwaited,  // was a member when the snapshot was made that this server has started from
    kPresent,
    kLeft,
    kEvicted,
  };

  Rank worker = 0;
  Presence presence = Presence::kNever;
  bool was_present = false;
  std::uint64_t incarnation = 0;
  std::uint64_t applied = 0;   // pushes of this incarnation that have been dealt with
  std::uint64_t durable = 0;   // of these, on disk
  std::uint64_t progress = 0;  // pushes in the model, of all incarnations
  std::uint64_t clock = 0;     // kBounded: steps taken
  PushAnswer answer = {};      // to the push number `applied`
  std::vector<PastIncarnation> past = {};
  std::uint64_t asks_about = 0;  // the incarnation that its process held before

  std::optional<std::uint64_t> connection = {};
  Deadline last_heard = {};
  Deadline lost_at = {};  // when its last connection ended
  StagedPush push = {};
  std::optional<WaitingPull> pull = {};
  std::optional<Reading> reading = {};
  bool ended = false;  // was told that all others are done, and has pushed nothing since
  bool leaving = false;
  LeaveKind leave = LeaveKind::kDone;  // of one that leaves or has left
  bool left_here = false;              // since this server started
  std::vector<float> pulled = {};  // delay compensation: what it pulled last; empty: nothing yet

  bool returned = false;        // with its incarnation, since this server started
  std::uint64_t replay_to = 0;  // it will repeat its pushes up to this one
  Deadline replayed_at = {};    // when it could begin, or went on, with that
  std::uint64_t holds = 0;      // kSync: the newest version that it had pulled when it joined
  std::optional<Announcement> announcement = {};
  std::uint64_t joins_with = 0;    // the snapshot that has to be on disk before it is told
  std::uint64_t goodbye_with = 0;  // likewise, before it is let go; 0: has been, or is not leaving

  bool live() const { return presence == Presence::kPresent || presence == Presence::kAwaited; }
  // Waits for the others to end, or has: it will push nothing more, and nobody waits for it.
  // With a push that waits for its round it is still one of that round.
  bool done() const { return !push.whole && (ended || (pull && pull->which == kPullWhenAlone)); }
  bool replays() const { return live() && applied < replay_to; }
  // Has sent all that it has to push, and waits.
  bool only_pulls() const { return pull && pull->after <= applied; }
  // Of the connection.
  void cut() { connection.reset(), reading.reset(); }
  // An incarnation that nobody has used yet.
  void renew(std::uint64_t next_incarnation);
};

class Members {
 public:
  explicit Members(int workers);

  std::vector<Member>& all() { return members_; }
  const std::vector<Member>& all() const { return members_; }
  Member& at(Rank worker) { return members_[static_cast<std::size_t>(worker)]; }
  const Member& at(Rank worker) const { return members_[static_cast<std::size_t>(worker)]; }
  bool has(Rank worker) const {
    return worker >= 0 && static_cast<std::size_t>(worker) < members_.size();
  }

  int live() const;
  int training() const;  // live, and not done
  int count(Member::Presence presence) const;
  // The smallest clock of the live members, but for `without`; nothing when there is none.
  std::optional<std::uint64_t> min_clock(Rank without = -1) const;

 private:
  std::vector<Member> members_;
};

// "1, 3"
std::string ranks_text(const std::vector<Rank>& ranks);

}  // namespace cohort
