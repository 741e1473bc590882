#include "server/members.h"

#include <algorithm>

namespace cohort::server {

void Member::disconnect() {
  reading.reset();
  pull.reset();
  if (!push.whole) push.clear();
}

void Member::renew(std::uint64_t former) {
  if (former != 0) {
    const bool in_model = applied > 0 && answer.kind == PushAnswer::Kind::kApplied;
    past.push_back({.incarnation = former, .applied = applied, .in_model = in_model});
    if (past.size() > kPastIncarnations) past.erase(past.begin());
  }
  applied = durable = 0;
  answer = {};
  push.clear();
  pull.reset();
  reading.reset();
  replay = {.holds = replay.holds};
  pulled.clear();
  ended = false;
}

Members::Members(int workers) : members_(static_cast<std::size_t>(workers)) {
  for (std::size_t i = 0; i < members_.size(); ++i) members_[i].worker = static_cast<Rank>(i);
}

std::vector<membership::MemberRow*> Members::rows() {
  std::vector<membership::MemberRow*> rows;
  for (Member& member : members_) rows.push_back(&member);
  return rows;
}

int Members::training() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& member) {
    return member.live() && !member.done();
  }));
}

std::optional<std::uint64_t> Members::min_clock(Rank without) const {
  std::optional<std::uint64_t> smallest;
  for (const Member& member : members_) {
    if (!member.live() || member.done() || member.worker == without) continue;
    smallest = std::min(smallest.value_or(member.clock), member.clock);
  }
  return smallest;
}

}  // namespace cohort::server
