#include "core/error.h"
#include "swamp/server_state.h"

namespace cohort::swamp {

void BestModelServer::State::on_leave(Member& member, const network::FrameHeader& header) {
  if (member.incoming.sequence != 0)
    throw PeerError(membership::named(member.worker) + " left amid an offer");
  member.leave = membership::decode_leave(member.worker, header);
  if (member.presence == Presence::kLeft) return roster.say_goodbye(member, 0);
  member.leaving = true;
  finish_leaves();
  examine_pulls();
}

void BestModelServer::State::finish_leaves() {
  for (Member& member : members) {
    if (!member.leaving || member.presence != Presence::kPresent || !member.held.empty()) continue;
    roster.leave(member);
    member.pull.reset();
    snapshots.changes();
    roster.say_goodbye(member, 0);
  }
}

void BestModelServer::State::evicted(membership::MemberRow&) {
  snapshots.changes();
  examine_pulls();
}

void BestModelServer::State::examine_end() {
  if (roster.finished() || roster.ending()) return;
  const std::string why = roster.reason_to_end();
  if (why.empty() || !all_judged()) return;
  const bool to_keep = settings.keeps_state && snapshots.changed() && spec;
  roster.end(why, to_keep);
  if (to_keep) request_snapshot();
}

}  // namespace cohort::swamp
