// What was acknowledged and is in no model: counted as far as somebody comes who knows of it.
#include <algorithm>

#include "server/numbers.h"
#include "server/server_state.h"

namespace cohort::server {

void ParameterServer::State::note_lost(std::uint64_t pushes, const std::string& why) {
  counters.lost += pushes;
  if (options.keeps_state) snapshots.want();  // whoever told may not be there to tell again
  log("LOST: " + std::to_string(pushes) + " acknowledged gradients are in no model: " + why);
}

// A worker that was given up tells what it had been answered, by a server that has forgotten it. In
// rounds the others have told already.
void ParameterServer::State::count_lost(Member& member, const network::FrameHeader& join) {
  if (spec->mode == ServerMode::kSync) return;
  std::uint64_t* answered = join.incarnation == member.incarnation ? &member.applied : nullptr;
  for (PastIncarnation& past : member.past) {
    if (past.incarnation == join.incarnation) answered = &past.applied;
  }
  if (answered == nullptr || join.sequence <= *answered) return;
  const std::uint64_t lost = join.sequence - *answered;
  const std::uint64_t told = std::min(lost, inferred_lost);  // by those who saw them
  inferred_lost -= told;
  *answered = join.sequence;
  if (loss) loss->accounted += lost;
  if (lost > told) {
    note_lost(lost - told, "worker " + std::to_string(member.worker) + " came back too late");
  }
}

// With the incarnation of the snapshot: it repeats what the server has forgotten of its pushes, and
// has seen what others had made.
void ParameterServer::State::comes_back(const Member& member, const network::FrameHeader& join) {
  if (!loss) return;
  loss->seen = std::max(loss->seen, version_near(model->version(), join.detail));
  if (join.sequence > member.applied) loss->accounted += join.sequence - member.applied;
}

void ParameterServer::State::incarnation_ends(membership::MemberRow& row) {
  Member& member = members->at(row.worker);
  if (member.presence == Member::Presence::kAwaited && loss) loss->workers.push_back(member.worker);
  member.push.clear();
  member.pull.reset();
  member.pulled.clear();
  if (!member.replay.returned || member.applied >= member.replay.to) return;
  const std::uint64_t lost = member.replay.to - member.applied;
  member.replay.to = 0;
  if (spec->mode == ServerMode::kSync) return name_unaccounted({member.worker});
  inferred_lost += lost;
  note_lost(lost, "worker " + std::to_string(member.worker) + " did not repeat them");
}

// How many gradients it is, nobody can tell.
void ParameterServer::State::name_unaccounted(const std::vector<Rank>& workers) {
  counters.unaccounted += workers.size();
  if (options.keeps_state) snapshots.want();
  log("worker " + membership::ranks_text(workers) +
      " did not come back since the restart: what it had " +
      "pushed after the snapshot and nobody has seen, if anything, is in no model");
}

// Once everybody has come back or does not. Of rounds the others tell that were told of them; else
// versions that were seen, and that nobody can repeat, were updates by those who do not come.
void ParameterServer::State::examine_losses() {
  if (!loss || roster.count(Member::Presence::kAwaited) > 0) return;
  const Loss all = *loss;
  loss.reset();
  const bool rounds = spec->mode == ServerMode::kSync;
  if (all.workers.empty()) return;
  if (!rounds && all.seen > all.accounted) {
    inferred_lost += all.seen - all.accounted;
    return note_lost(all.seen - all.accounted,
                     "worker " + membership::ranks_text(all.workers) +
                         " had pushed them after the snapshot, and did not come back");
  }
  name_unaccounted(all.workers);
}

}  // namespace cohort::server
