// What any server knows of one worker of its job.
//
// A worker is known by (rank, incarnation). Only the current incarnation of a rank counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"

namespace cohort::membership {

using ConnectionId = std::uint64_t;

// How a worker's part in the job ended.
enum class LeaveKind : std::uint32_t {
  kDone,
  kInterrupted,  // by the user: it may go on from its checkpoint
  kFailed,
};

// A row of a Roster. A server that has more to remember of a worker derives from it.
struct MemberRow {
  enum class Presence {
    kNever,    // has not joined yet
    kJoining,  // waits until its incarnation, or the job itself, is on disk
    kAwaited,  // was a member when the snapshot was made that this server has started from
    kPresent,
    kLeft,
    kEvicted,
  };

  Rank worker = 0;
  Presence presence = Presence::kNever;
  bool was_present = false;
  std::uint64_t incarnation = 0;
  std::uint64_t before = 0;  // the incarnation that its process held before it was fenced

  std::optional<ConnectionId> connection = {};
  Deadline last_heard = {};
  Deadline lost_at = {};  // when its last connection ended

  bool leaving = false;
  LeaveKind leave = LeaveKind::kDone;  // of one that leaves or has left
  bool left_here = false;              // since this server started

  std::uint64_t joins_with = 0;    // the snapshot that has to be on disk before it is told
  std::uint64_t goodbye_with = 0;  // likewise, before it is let go; 0: has been, or is not leaving

  bool live() const { return presence == Presence::kPresent || presence == Presence::kAwaited; }
  // Something may still come of it: only silence ends that.
  bool expected() const { return live() || presence == Presence::kJoining; }
};

// "1, 3"
std::string ranks_text(const std::vector<Rank>& ranks);
// "worker 1"
std::string named(Rank worker);

}  // namespace cohort::membership
