// What the best-model server knows of a worker: the roster's row, and its offers and pulls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "membership/member.h"
#include "swamp/best_model_server.h"
#include "swamp/messages.h"

namespace cohort::swamp {

struct SwampMember : membership::MemberRow {
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

  std::uint64_t newest = 0;           // offer that has arrived whole since this server started
  std::set<std::uint64_t> held = {};  // offers that are whole and not judged
  std::map<std::uint64_t, OfferVerdict> verdicts = {};  // that it may not have got
  std::uint64_t own_version = 0;                        // the last that was accepted of it
  Incoming incoming = {};
  std::optional<Pull> pull = {};
  bool ended = false;  // has got the final model, and offered nothing since

  // It will offer nothing more, as far as it has said.
  bool done() const { return leaving || ended || (pull && pull->kind == PullKind::kFinal); }
  bool knows(std::uint64_t sequence) const {
    return held.count(sequence) == 1 || verdicts.count(sequence) == 1;
  }
  // Its connection is gone.
  void disconnect() { incoming = {}, pull.reset(); }
  // It has a new incarnation.
  void renew();
};

}  // namespace cohort::swamp
