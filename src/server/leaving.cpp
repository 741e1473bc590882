#include <algorithm>

#include "core/error.h"
#include "server/planted.h"
#include "server/server_state.h"

namespace cohort {

using Presence = Member::Presence;

void ParameterServer::State::on_leave(Member& member) {
  if (member.push.arrived > 0 && !member.push.whole) {
    throw PeerError("worker " + std::to_string(member.worker) + " left amid a push");
  }
  member.leaving = true;
  if (!member.push.whole) finish_leave(member);
}

// It holds up nobody any more, but is let go only when nothing of it has to be repeated.
void ParameterServer::State::finish_leave(Member& member) {
  member.leaving = false;
  const bool known = member.presence == Presence::kLeft;
  member.presence = Presence::kLeft;
  member.pull.reset();
  member.reading.reset();
  member.goodbye_with = 0;
  if (options.keeps_state && member.durable < member.applied) {
    member.goodbye_with = request_snapshot();
  } else {
    send(member, ServerFrame::kGoodbye);
  }
  if (known) return;
  changed = true;
  ports.log("worker " + std::to_string(member.worker) + " is done; " + text());
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::evict(Member& member, const std::string& why) {
  if (member.live()) {
    ++counters.evictions;
    ports.log("worker " + std::to_string(member.worker) + " is evicted: " + why);
  }
  member.presence = member.was_present ? Presence::kEvicted : Presence::kNever;
  member.leaving = false;
  member.push.clear();
  member.pull.reset();
  member.pulled.clear();
  changed = true;
  if (member.connection && !COHORT_PLANTED(kNoFencing)) {
    forget(*member.connection, why);
  }
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::evict_silent() {
  const auto seconds = std::chrono::duration<double>(options.evict_after).count();
  for (Member& member : members->all()) {
    const bool awaited = member.presence == Presence::kAwaited;
    const bool expected = member.live() || member.presence == Presence::kJoining;
    const auto limit =
        awaited ? std::max(options.return_within, options.evict_after) : options.evict_after;
    const bool cut_off = spec->mode == ServerMode::kBounded &&
                         member.presence == Presence::kPresent && !member.connection &&
                         now - member.lost_at > options.evict_unconnected;
    // Everybody waits for what it has announced, and being heard is not enough.
    const bool withholds = recovering && member.replays() && !member.push.whole && !awaited &&
                           now - member.replayed_at > std::max(options.return_within, limit);
    if (!expected || (now - member.last_heard <= limit && !cut_off && !withholds)) continue;
    std::string why = "not heard of for " + std::to_string(seconds).substr(0, 4) + " s";
    if (cut_off) why = "its connection ended";
    if (withholds) why = "does not repeat what it had pushed before the restart";
    if (awaited) {
      why = "has not come back since the restart; what it had pushed after the snapshot is lost";
    }
    evict(member, why);
  }
}

bool ParameterServer::State::somebody_there() const {
  return members && (members->live() > 0 || members->count(Presence::kJoining) > 0);
}

void ParameterServer::State::examine_end() {
  if (finished) return;
  if (ending) {
    if (somebody_there()) ending.reset();  // one that had been evicted has come back
    return;
  }
  std::string why;
  if (connections.empty()) {
    if (!idle_since) idle_since = now;
    if (now - *idle_since >= options.idle_exit) why = "no worker has been here for too long";
  }
  if (!members || somebody_there() || members->count(Presence::kLeft) == 0) {
    gone_since.reset();
  } else {
    if (!gone_since) gone_since = now;
    std::chrono::nanoseconds wait{0};
    if (members->count(Presence::kEvicted) > 0) wait = options.evict_after * 2;
    if (members->count(Presence::kNever) > 0) wait = std::max(wait, options.late_start);
    if (now - *gone_since >= wait) why = "all workers are done";
  }
  if (why.empty()) return;
  if (options.keeps_state && changed && members) {
    ending = why;
    request_snapshot();
  } else {
    finished = why;
  }
}

std::string ParameterServer::State::text() const {
  if (!members) return "no worker yet";
  std::vector<Rank> awaited;
  bool started_once = true;
  for (const Member& member : members->all()) started_once = started_once && member.was_present;
  for (const Member& member : members->all()) {
    const bool to_come = member.presence == Presence::kNever ||
                         member.presence == Presence::kJoining ||
                         member.presence == Presence::kAwaited;
    const bool slow = started_once && initialized && spec->mode == ServerMode::kSync &&
                      member.live() && !member.push.whole && !finished_training();
    if (to_come || slow) awaited.push_back(member.worker);
  }
  std::string text =
      std::to_string(members->live()) + " of " + std::to_string(spec->workers) + " workers";
  if (!awaited.empty()) text += "; waiting for " + ranks_text(awaited);
  return text;
}

}  // namespace cohort
