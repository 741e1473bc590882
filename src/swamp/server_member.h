// One worker of the job, as the server's table has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "swamp/best_model_server.h"
#include "swamp/messages.h"

namespace cohort {

// Only its current incarnation counts.
struct SwampMember {
  enum class Presence {
    kNever,    // has not joined yet
    kJoining,  // waits until the job itself is on disk
    kAwaited,  // was there when the snapshot was made that this server has started from
    kPresent,
    kLeft,
    kEvicted,  // may come back, also with the incarnation it has
  };

  // The offer that is coming in. The memory is given out to receive into.
  struct Incoming {
    std::uint64_t sequence = 0;  // 0: none
    double claim = 0;
    std::int64_t arrived = 0;
    std::shared_ptr<std::vector<float>> values = {};  // null: it was here before
  };

  struct Pull {
    std::uint64_t id = 0;
    PullKind kind = PullKind::kPolicy;
    std::uint64_t has_version = 0;
    Deadline since = {};
  };

  Rank worker = 0;
  Presence presence = Presence::kNever;
  bool was_present = false;
  std::uint64_t incarnation = 0;
  std::optional<SwampConnection> connection = {};
  Deadline last_heard = {};
  Deadline lost_at = {};  // when its last connection ended

  std::uint64_t newest = 0;           // offer that has arrived whole since this server started
  std::set<std::uint64_t> held = {};  // offers that are whole and not judged
  std::map<std::uint64_t, OfferVerdict> verdicts = {};  // that it may not have got
  std::uint64_t own_version = 0;                        // the last that was accepted of it
  Incoming incoming = {};
  std::optional<Pull> pull = {};
  bool ended = false;  // has got the final model, and offered nothing since
  bool leaving = false;

  bool there() const {
    return presence == Presence::kPresent || presence == Presence::kJoining ||
           presence == Presence::kAwaited;
  }
  // It will offer nothing more, as far as it has said.
  bool done() const { return leaving || ended || (pull && pull->kind == PullKind::kFinal); }
  bool knows(std::uint64_t sequence) const {
    return held.count(sequence) == 1 || verdicts.count(sequence) == 1;
  }
  // An incarnation that nobody has used yet.
  void renew(std::uint64_t next_incarnation);
};

}  // namespace cohort
