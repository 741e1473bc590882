#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "server/server_state.h"

namespace cohort {

using Presence = Member::Presence;

namespace {

// How a worker's part in the job ended.
std::string ending_of(const Member& member) {
  if (member.presence == Presence::kNever) return "never came";
  if (member.presence != Presence::kLeft) return "given up";
  if (member.leave == LeaveKind::kDone) return "done";
  return member.leave == LeaveKind::kInterrupted ? "interrupted" : "failed";
}

}  // namespace

void ParameterServer::State::on_leave(Member& member, const FrameHeader& header) {
  if (header.detail > static_cast<std::uint32_t>(LeaveKind::kFailed)) {
    throw PeerError("worker " + std::to_string(member.worker) + " left in an unknown way");
  }
  if (member.push.arrived > 0 && !member.push.whole) {
    throw PeerError("worker " + std::to_string(member.worker) + " left amid a push");
  }
  member.leaving = true;
  member.leave = static_cast<LeaveKind>(header.detail);
  member.left_here = true;
  if (!member.push.whole) finish_leave(member);
}

// It holds up nobody any more, but is let go only when nothing of it has to be repeated, and it is
// on disk that it left: servers that start again are not to disagree on whether it may come back.
void ParameterServer::State::finish_leave(Member& member) {
  member.leaving = false;
  const bool known = member.presence == Presence::kLeft;
  member.presence = Presence::kLeft;
  if (member.worker == 0 && !known) first_gone_at = model->version();
  member.pull.reset();
  member.reading.reset();
  const bool told = known && member.goodbye_with == 0;
  member.goodbye_with = 0;
  if (options.keeps_state && (!told || member.durable < member.applied)) {
    member.goodbye_with = request_snapshot();
  } else {
    send(member, ServerFrame::kGoodbye);
  }
  if (known) return;
  changed = true;
  if (member.leave == LeaveKind::kInterrupted) rounds_from = now + options.interruption_grace;
  log("worker " + std::to_string(member.worker) + " has left (" + ending_of(member) + "); " +
      text());
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::evict(Member& member, const std::string& why) {
  if (member.live()) {
    ++counters.evictions;
    log("worker " + std::to_string(member.worker) + " is evicted: " + why);
  }
  if (member.worker == 0) first_gone_at = model->version();
  does_not_repeat(member);
  member.presence = member.was_present ? Presence::kEvicted : Presence::kNever;
  member.leaving = false;
  member.push.clear();
  member.pull.reset();
  member.pulled.clear();
  changed = true;
  if (member.connection) forget(*member.connection, why);
  examine_losses();
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

bool ParameterServer::State::all_left(std::initializer_list<LeaveKind> how) const {
  if (!members) return false;
  return std::all_of(members->all().begin(), members->all().end(), [&](const Member& member) {
    return member.presence == Presence::kLeft &&
           std::find(how.begin(), how.end(), member.leave) != how.end();
  });
}

bool ParameterServer::State::all_done() const { return all_left({LeaveKind::kDone}); }

// "all workers are done", or "workers 0, 2: done; worker 1: given up".
std::string ParameterServer::State::endings() const {
  std::vector<std::pair<std::string, std::vector<Rank>>> by_ending;  // in the order of ranks
  for (const Member& member : members->all()) {
    const std::string how = ending_of(member);
    auto found = std::find_if(by_ending.begin(), by_ending.end(),
                              [&](const auto& each) { return each.first == how; });
    if (found == by_ending.end()) found = by_ending.insert(found, {how, {}});
    found->second.push_back(member.worker);
  }
  std::vector<std::string> parts;
  for (const auto& [how, ranks] : by_ending) {
    parts.push_back((ranks.size() > 1 ? "workers " : "worker ") + ranks_text(ranks) + ": " + how);
  }
  if (all_done()) parts = {"all workers are done"};
  if (skipped > 0) {
    parts.push_back(std::to_string(skipped) + " of " + std::to_string(model->version()) +
                    " updates are missing: they were lost with the workers that had made them");
  }
  if (counters.lost > 0) {
    parts.push_back(std::to_string(counters.lost) + " acknowledged gradients are in no model");
  }
  if (counters.unaccounted > 0) {
    parts.push_back(std::to_string(counters.unaccounted) +
                    " times a worker went with the server: " +
                    "what it had pushed since the snapshot, if anything, is in no model");
  }
  return cohort::join(parts, "; ");
}

std::string ParameterServer::State::reason_to_end() {
  if (connections.empty()) {
    if (!idle_since) idle_since = now;
    if (now - *idle_since >= options.idle_exit) {
      return "no worker has been here for too long" + (members ? "; " + endings() : "");
    }
  }
  // One that was interrupted may come back; one that has a checkpoint waits for worker 0.
  const bool held = std::any_of(connections.begin(), connections.end(),
                                [](const auto& each) { return each.second.restart.has_value(); });
  if (held || !all_left({LeaveKind::kDone, LeaveKind::kFailed})) {
    gone_since.reset();
    return {};
  }
  if (!gone_since) gone_since = now;
  const auto wait = welcomed ? std::chrono::nanoseconds(0) : options.late_start;
  return now - *gone_since >= wait ? endings() : "";
}

void ParameterServer::State::examine_end() {
  if (finished) return;
  if (ending) {
    if (somebody_there()) ending.reset();  // one that had been evicted has come back
    return;
  }
  const std::string why = reason_to_end();
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
