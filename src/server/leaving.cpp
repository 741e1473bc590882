#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "server/server_state.h"

namespace cohort::server {

void ParameterServer::State::on_leave(Member& member, const network::FrameHeader& header) {
  const membership::LeaveKind how = membership::decode_leave(member.worker, header);
  if (member.push.arrived > 0 && !member.push.whole) {
    throw PeerError("worker " + std::to_string(member.worker) + " left amid a push");
  }
  member.leaving = true;
  member.leave = how;
  if (!member.push.whole) finish_leave(member);
}

// It holds up nobody any more, but is let go only when nothing of it has to be repeated, and it is
// on disk that it left: servers that start again are not to disagree on whether it may come back.
void ParameterServer::State::finish_leave(Member& member) {
  const bool told = member.presence == Member::Presence::kLeft && member.goodbye_with == 0;
  const bool news = roster.leave(member);
  if (member.worker == 0 && news) first_gone_at = model->version();
  member.pull.reset();
  member.reading.reset();
  const bool waits = options.keeps_state && (!told || member.durable < member.applied);
  roster.say_goodbye(member, waits ? request_snapshot() : 0);
  if (!news) return;
  snapshots.changes();
  if (member.leave == membership::LeaveKind::kInterrupted)
    rounds_from = roster.now() + options.interruption_grace;
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::evicted(membership::MemberRow& row) {
  if (row.worker == 0) first_gone_at = model->version();
  snapshots.changes();
  examine_losses();
  examine_rounds();
  examine_pulls();
}

// Who is heard of, and yet keeps the others waiting.
void ParameterServer::State::evict_who_holds_up() {
  const std::chrono::nanoseconds patience = std::max(options.return_within, options.evict_after);
  for (Member& member : members->all()) {
    if (member.presence != Member::Presence::kPresent) continue;
    const bool cut_off = spec->mode == ServerMode::kBounded && !member.connection &&
                         roster.now() - member.lost_at > options.evict_unconnected;
    if (cut_off) roster.evict(member, "its connection ended");
    // Everybody waits for what it has announced.
    const bool withholds = recovering && member.replays() && !member.push.whole &&
                           roster.now() - member.replay.since > patience;
    if (withholds) {
      roster.evict(member, "does not repeat what it had pushed before the restart");
    }
  }
}

// For people: what the model lacks, with "; " before each; empty: nothing.
std::string ParameterServer::State::lost_text() const {
  std::string text;
  if (skipped > 0) {
    text += "; " + std::to_string(skipped) + " of " + std::to_string(model->version()) +
            " updates are missing: they were lost with the workers that had made them";
  }
  if (counters.lost > 0) {
    text += "; " + std::to_string(counters.lost) + " acknowledged gradients are in no model";
  }
  if (counters.unaccounted > 0) {
    text += "; " + std::to_string(counters.unaccounted) + " times a worker went with the server: " +
            "what it had pushed since the snapshot, if anything, is in no model";
  }
  return text;
}

void ParameterServer::State::examine_end() {
  if (roster.finished() || roster.ending()) return;
  std::string why = roster.reason_to_end();
  // Of those who have a checkpoint it is worker 0 that is waited for.
  if (why.empty() || !restarts.empty()) return;
  why += lost_text();
  const bool to_keep = options.keeps_state && snapshots.changed() && members;
  roster.end(why, to_keep);
  if (to_keep) request_snapshot();
}

std::string ParameterServer::State::text() const {
  std::vector<Rank> slow;
  const bool rounds = members && initialized && spec->mode == ServerMode::kSync &&
                      !finished_training() &&
                      std::all_of(members->all().begin(), members->all().end(),
                                  [](const Member& member) { return member.was_present; });
  if (!rounds) return roster.text();
  for (const Member& member : members->all()) {
    if (member.live() && !member.push.whole) slow.push_back(member.worker);
  }
  return roster.text(slow);
}

}  // namespace cohort::server
