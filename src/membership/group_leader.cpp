// What the leader of an elastic group does.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/ranks.h"
#include "membership/group.h"

namespace cohort::membership {
namespace {

constexpr std::chrono::milliseconds kTogether{500};  // losses within it are judged together
constexpr std::chrono::seconds kTimeToEnd{2};        // of a process whose links have ended,
constexpr std::chrono::milliseconds kAskAgain{400};  // for which its host is asked so often

}  // namespace

// After everything that happens: what can be done now.
void ElasticGroup::lead() {
  if (end_ || entering_ || leader_ != rank_) return;
  const bool all_asked = awaited().empty() && is_established();
  const bool losses_settled = now_ >= lost_at_ + kTogether;
  if (!all_asked && !losses_settled) return;
  if (!has_quorum()) return;
  if (!told_ && losses_settled && is_established()) tell_losses();
  if (!all_asked) return;
  try {
    make_answer();
  } catch (const PeerError& error) {
    finish(error.what());
  }
}

void ElasticGroup::make_answer() {
  std::map<Rank, Bytes> parts = std::move(parts_);
  parts[rank_] = *own_;
  Combined combined = combine_(parts);
  ElasticAnswer answer{rank_, ranks_here(), {}, {answer_.present, answer_.leader}, combined.result};
  if (combined.lets_in) {
    ports_.leads();
    answer.joined = let_in();
    for (const auto& [rank, text] : answer.joined) answer.present[rank] = true;
  }
  const Bytes bytes = encode(answer);
  for (Rank to = 0; to < size_; ++to) {
    if (answer.present[to] && to != rank_) send(to, Kind::kResult, answered_ + 1, bytes);
  }
  stood_.clear();
  told_ = true;
  take_answer(answered_ + 1, bytes);
}

void ElasticGroup::tell_losses() {
  Bytes present;
  for (const bool is : ranks_here()) present.push_back(is ? std::byte{1} : std::byte{0});
  for (Rank to = 0; to < size_; ++to) {
    if (to != rank_ && has(to)) send(to, Kind::kPresent, answered_, present);
  }
  told_ = true;
}

// Whoever leads in another's place has heard from all that are left.
bool ElasticGroup::is_established() const {
  if (answer_.leader == rank_) return true;
  for (Rank other = 0; other < size_; ++other) {
    if (other != rank_ && has(other) && !stood_.contains(other)) return false;
  }
  return true;
}

bool ElasticGroup::has_majority_of(const std::vector<bool>& ranks, Rank leader) const {
  int all = 0;
  int ours = 0;
  for (Rank other = 0; other < size_; ++other) {
    all += ranks[other] ? 1 : 0;
    ours += ranks[other] && has(other) ? 1 : 0;
  }
  return 2 * ours + (has(leader) ? 1 : 0) > all;
}

// Two sides that have lost each other must not both go on. That of the last answer is not enough:
// it may count ranks that never got it, and have gone on without this one.
bool ElasticGroup::has_quorum() {
  const ElasticSide& before = answer_.before;
  if (has_majority_of(answer_.present, answer_.leader) &&
      has_majority_of(before.ranks, before.leader)) {
    doubted_at_.reset();
    return true;
  }
  std::vector<Rank> unsure;
  for (Rank other = 0; other < size_; ++other) {
    const bool was = answer_.present[other] || before.ranks[other];
    if (was && !has(other) && !ended_.contains(other)) unsure.push_back(other);
  }
  if (!doubted_at_) doubted_at_ = ask_at_ = now_;
  bool may_learn = true;
  if (now_ >= ask_at_) {
    ask_at_ = now_ + kAskAgain;
    may_learn = false;
    std::erase_if(unsure, [&](Rank other) {
      const auto ended = answers_after_stop_ < 2 ? std::nullopt : ports_.has_ended(other);
      may_learn = may_learn || ended.has_value();
      if (ended.value_or(false)) ended_.insert(other);
      return ended.value_or(false);
    });
  }
  if (unsure.empty()) return true;
  if (!may_learn || now_ >= *doubted_at_ + kTimeToEnd) {
    const std::vector<bool> here = ranks_here();
    cut_off("it has lost " + list_of(unsure) + ", which may go on without it: " +
            std::to_string(std::count(here.begin(), here.end(), true)) + " of " +
            std::to_string(size_) + " are left here");
  }
  return false;
}

std::vector<std::pair<Rank, std::string>> ElasticGroup::let_in() {
  std::vector<std::pair<Rank, std::string>> joined;
  for (const Rank rank : std::exchange(ready_, {})) {
    if (!has(rank) && ports_.readmit(rank)) joined.emplace_back(rank, introduced_[rank]);
    introduced_.erase(rank);
  }
  return joined;
}

void ElasticGroup::rank_returned(Rank from, const std::string& text) {
  if (has(from)) {  // this is another in its place
    gone_[from] = true;
    lost_at_ = now_;
    told_ = false;
    if (from == leader_) follow_next();
  }
  forget(from);
  if (leader_ != rank_ || entering_) {
    throw PeerError(list_of({rank_}) + " does not lead, but " + list_of({leader_}));
  }
  ElasticAnswer answer{rank_, ranks_here(), {}, {}, {}};
  for (const auto& [other, said] : introduced_) answer.present[other] = true;
  const std::string told = ports_.introduce(from, text);
  introduced_[from] = text;
  answer.result = bytes_of(told);
  send(from, Kind::kIntroduction, 0, encode(answer));
}

void ElasticGroup::welcome(Rank rank, std::span<const std::byte> entry) {
  send(rank, Kind::kEntry, answered_, entry);
}

}  // namespace cohort::membership
