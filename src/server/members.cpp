#include "server/members.h"

#include <algorithm>

#include "core/text.h"

namespace cohort {

void Member::renew(std::uint64_t next_incarnation) {
  if (incarnation != 0) {
    const bool in_model = applied > 0 && answer.kind == PushAnswer::Kind::kApplied;
    past.push_back({.incarnation = incarnation, .applied = applied, .in_model = in_model});
    if (past.size() > kPastIncarnations) past.erase(past.begin());
  }
  incarnation = next_incarnation;
  applied = durable = replay_to = goodbye_with = 0;
  answer = {};
  push.clear();
  pull.reset();
  reading.reset();
  announcement.reset();
  pulled.clear();
  ended = leaving = returned = false;
}

Members::Members(int workers) : members_(static_cast<std::size_t>(workers)) {
  for (std::size_t i = 0; i < members_.size(); ++i) members_[i].worker = static_cast<Rank>(i);
}

int Members::live() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [](const Member& member) { return member.live(); }));
}

int Members::training() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& member) {
    return member.live() && !member.done();
  }));
}

int Members::count(Member::Presence presence) const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(),
                    [&](const Member& member) { return member.presence == presence; }));
}

std::optional<std::uint64_t> Members::min_clock(Rank without) const {
  std::optional<std::uint64_t> smallest;
  for (const Member& member : members_) {
    if (!member.live() || member.done() || member.worker == without) continue;
    smallest = std::min(smallest.value_or(member.clock), member.clock);
  }
  return smallest;
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::vector<std::string> texts;
  for (const Rank rank : ranks) texts.push_back(std::to_string(rank));
  return join(texts, ", ");
}

}  // namespace cohort
