#include "server/rounds.h"

#include <algorithm>
#include <set>

namespace cohort::server {
namespace {

using Kind = RoundDecision::Kind;

// What the members say about the round after `version`. Two may disagree when the server was
// restarted twice and one of them was given up in between: each one's push has to be in the model.
std::set<Rank> announced(const Members& members, std::uint64_t version) {
  std::set<Rank> workers;
  for (const Member& member : members.all()) {
    if (!member.replay.announcement || member.replay.announcement->base != version) continue;
    workers.insert(member.replay.announcement->workers.begin(),
                   member.replay.announcement->workers.end());
  }
  return workers;
}

// It is here, and has nothing for this round: it had been told that its push came too late.
bool has_moved_on(const Member& member, std::uint64_t version) {
  if (member.push.whole) return member.push.base > version;
  return !member.replays() && member.only_pulls();
}

RoundDecision repeat_round(const Members& members, const std::set<Rank>& workers,
                           std::uint64_t version) {
  RoundDecision decision{.kind = Kind::kMake, .participants = {}, .missing = {}, .version = 0};
  for (const Rank worker : workers) {
    if (!members.has(worker)) continue;
    const Member& member = members.at(worker);
    if (!member.live() || !member.replay.returned) {
      decision.missing.push_back(worker);
    } else if (member.push.whole && member.push.base == version) {
      decision.participants.push_back(worker);
    } else if (!has_moved_on(member, version)) {
      decision.kind = Kind::kWait;
    }
  }
  if (decision.kind == Kind::kMake && decision.participants.empty()) {
    decision.kind = Kind::kSkip;
    decision.version = version + 1;
  }
  return decision;
}

}  // namespace

RoundDecision next_round(const Members& members, const JobSpec& spec) {
  RoundDecision decision;
  for (const Member& member : members.all()) {
    if (!member.was_present) return decision;
    if (member.live() && member.push.whole) decision.participants.push_back(member.worker);
  }
  const int needed = std::max(1, std::min(members.training(), spec.workers - spec.backup_workers));
  if (static_cast<int>(decision.participants.size()) >= needed) decision.kind = Kind::kMake;
  return decision;
}

RoundDecision next_recovered_round(const Members& members, std::uint64_t version) {
  std::vector<Rank> at_version;
  bool all_heard = true;               // everybody has shown whether it has a push for this round
  std::optional<std::uint64_t> ahead;  // the smallest version of a repeated push that is further on
  for (const Member& member : members.all()) {
    if (member.presence == Member::Presence::kAwaited) return {};
    if (member.replays() && !member.push.whole) return {};
    if (!member.live()) continue;
    if (!member.push.whole) {
      all_heard = all_heard && (member.only_pulls() || !member.replay.returned);
      continue;
    }
    if (member.push.base == version) {
      at_version.push_back(member.worker);
    } else if (member.push.base > version && member.push.sequence <= member.replay.to) {
      ahead = std::min(ahead.value_or(member.push.base), member.push.base);
    }
  }
  const std::set<Rank> workers = announced(members, version);
  if (!workers.empty()) return repeat_round(members, workers, version);
  RoundDecision decision;
  if (!ahead) {
    decision.kind = Kind::kRecovered;
  } else if (!all_heard) {
    decision.kind = Kind::kWait;
  } else if (!at_version.empty()) {
    decision.kind = Kind::kMake;
    decision.participants = at_version;
  } else {
    decision.kind = Kind::kSkip;
    decision.version = *ahead;
  }
  return decision;
}

}  // namespace cohort::server
