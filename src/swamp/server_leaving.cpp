#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "swamp/server_state.h"

namespace cohort {

void BestModelServer::State::on_leave(Member& member) {
  if (member.incoming.sequence != 0) {
    throw PeerError("worker " + std::to_string(member.worker) + " left amid an offer");
  }
  if (member.presence == Presence::kLeft) return send(member, SwampFrame::kGoodbye);
  member.leaving = true;
  finish_leaves();
  examine_pulls();
}

void BestModelServer::State::finish_leaves() {
  for (Member& member : members) {
    if (!member.leaving || member.presence != Presence::kPresent || !member.held.empty()) continue;
    member.presence = Presence::kLeft;
    member.pull.reset();
    changed = true;
    send(member, SwampFrame::kGoodbye);
    log("worker " + std::to_string(member.worker) + " is done; " + text());
  }
}

void BestModelServer::State::evict(Member& member, const std::string& why) {
  if (member.presence != Presence::kJoining) {
    ++counters.evictions;
    log("worker " + std::to_string(member.worker) + " is given up: " + why);
  }
  member.presence = member.was_present ? Presence::kEvicted : Presence::kNever;
  member.leaving = false;
  member.incoming = {};
  member.pull.reset();
  changed = true;
  if (member.connection) forget(*member.connection, why);
}

void BestModelServer::State::evict_silent() {
  bool evicted = false;
  for (Member& member : members) {
    const bool awaited = member.presence == Presence::kAwaited;
    const auto limit =
        awaited ? std::max(settings.return_within, settings.evict_after) : settings.evict_after;
    if (!member.there() || now - member.last_heard <= limit) continue;
    const auto seconds = std::chrono::duration<double>(limit).count();
    evict(member, awaited ? "has not come back since the restart"
                          : "not heard of for " + std::to_string(seconds).substr(0, 4) + " s");
    evicted = true;
  }
  if (evicted) examine_pulls();
}

bool BestModelServer::State::somebody_there() const {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& member) { return member.there(); });
}

int BestModelServer::State::count(Presence presence) const {
  return static_cast<int>(std::count_if(members.begin(), members.end(), [&](const Member& member) {
    return member.presence == presence;
  }));
}

void BestModelServer::State::examine_end() {
  if (finished) return;
  if (ending) {
    if (somebody_there()) ending.reset();  // one that had been given up has come back
    return;
  }
  std::string why;
  if (connections.empty()) {
    if (!idle_since) idle_since = now;
    if (now - *idle_since >= settings.idle_exit) why = "no worker has been here for too long";
  }
  if (!spec || somebody_there() || count(Presence::kLeft) == 0) {
    gone_since.reset();
  } else {
    if (!gone_since) gone_since = now;
    std::chrono::nanoseconds wait{0};
    if (count(Presence::kEvicted) > 0) wait = settings.evict_after * 2;
    if (count(Presence::kNever) > 0) wait = std::max(wait, settings.late_start);
    if (now - *gone_since >= wait) why = "all workers are done";
  }
  if (why.empty() || !all_judged()) return;
  if (settings.keeps_state && changed && spec) {
    ending = why;
    request_snapshot();
  } else {
    finished = why;
  }
}

std::string BestModelServer::State::text() const {
  if (!spec) return "no worker yet";
  std::vector<std::string> awaited;
  int here = 0;
  for (const Member& member : members) {
    here += member.presence == Presence::kPresent ? 1 : 0;
    const bool to_come = member.presence == Presence::kNever ||
                         member.presence == Presence::kJoining ||
                         member.presence == Presence::kAwaited;
    if (to_come && awaited.size() < 32) awaited.push_back(std::to_string(member.worker));
  }
  std::string text = std::to_string(here) + " of " + std::to_string(spec->workers) + " workers";
  if (!awaited.empty()) text += "; waiting for " + join(awaited, ", ");
  return text;
}

}  // namespace cohort
