#include "membership/group.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/ranks.h"

namespace cohort::membership {
namespace {

constexpr std::chrono::seconds kStopped{3};  // without a tick

}  // namespace

ElasticGroup::ElasticGroup(Rank rank, int size, Ports& ports, std::optional<Rank> enters)
    : rank_(rank),
      size_(size),
      ports_(ports),
      leader_(enters.value_or(0)),
      newcomer_(enters.has_value()),
      entering_(enters.has_value()),
      gone_(static_cast<std::size_t>(size), false) {
  answer_.leader = leader_;
  answer_.present.assign(static_cast<std::size_t>(size), !entering_);
  answer_.before = {answer_.present, leader_};
}

std::vector<bool> ElasticGroup::ranks_here() const {
  std::vector<bool> ranks = answer_.present;
  for (Rank other = 0; other < size_; ++other) ranks[other] = has(other);
  return ranks;
}

// Those whose parts the operation still needs.
std::vector<Rank> ElasticGroup::awaited() const {
  std::vector<Rank> ranks;
  for (Rank other = 0; other < size_; ++other) {
    if (has(other) && !(other == rank_ ? own_.has_value() : parts_.contains(other))) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

void ElasticGroup::send(Rank to, Kind kind, std::uint64_t operation,
                        std::span<const std::byte> payload) {
  ports_.send(to, elastic_message(kind, operation, payload));
}

void ElasticGroup::contribute(Bytes part, Combine combine, Deadline now) {
  if (end_) return;
  look_at_clock(now);
  COHORT_CHECK(!own_ && !entering_, "one operation at a time");
  own_ = std::move(part);
  combine_ = std::move(combine);
  if (leader_ != rank_) send(leader_, Kind::kPart, answered_ + 1, *own_);
  lead();
}

void ElasticGroup::enter() {
  if (gone_[leader_]) return cut_off(list_of({leader_}) + " is lost");
  send(leader_, Kind::kReady, 0, {});
}

void ElasticGroup::leave(const std::string& reason) {
  if (!end_) finish(reason);
}

void ElasticGroup::run_out_of_patience() {
  if (end_) return;
  if (leader_ != rank_) {
    finish("nothing came from " + list_of({leader_}) + ", the leader, in time (--peer-timeout)");
  } else if (is_established()) {
    finish("nothing came from " + list_of(awaited()) + " in time (--peer-timeout)");
  } else {
    cut_off("nothing came from " + list_of(awaited()) + ", which may follow another");
  }
}

// Everybody tells everybody, so that the reason arrives whoever is lost meanwhile.
void ElasticGroup::finish(const std::string& reason) {
  end_ = End{false, reason};
  for (Rank to = 0; to < size_; ++to) {
    if (to != rank_ && has(to)) send(to, Kind::kFarewell, 0, bytes_of(reason));
  }
}

// The others need not wait until its owner knows.
void ElasticGroup::cut_off(const std::string& why) {
  end_ = End{true, list_of({rank_}) + " is cut off from the others: " + why};
  for (Rank other = 0; other < size_; ++other) {
    if (other != rank_) ports_.give_up(other, {});
  }
}

void ElasticGroup::look_at_clock(Deadline now) {
  if (now_ != Deadline() && now > now_ + kStopped) answers_after_stop_ = 0;
  now_ = now;
}

void ElasticGroup::on_message(Rank from, std::span<const std::byte> bytes, Deadline now) {
  if (end_) return;
  look_at_clock(now);
  try {
    handle(from, read_elastic(from, bytes));
  } catch (const Error& error) {
    // What one that is not let in says may be wrong, and is its own affair.
    if (has(from) || (entering_ && from == leader_)) return finish(error.what());
    forget(from);
    send(from, Kind::kFarewell, 0, bytes_of(error.what()));
  }
  lead();
}

void ElasticGroup::handle(Rank from, const ElasticMessage& message) {
  const auto& [header, payload] = message;
  if (header.kind == Kind::kReturn) return rank_returned(from, text_of(payload));
  if (header.kind == Kind::kReady) {
    if (introduced_.contains(from)) ready_.insert(from);
    return;
  }
  const bool is_leader = from == leader_ && (entering_ || has(from));
  if (!has(from) && !is_leader) return;  // it was given up, and knows or will know
  switch (header.kind) {
    case Kind::kPart:
      return part_came(from, message);
    case Kind::kSuccession:
      return succession_came(from, message);
    case Kind::kFarewell:
      return finish(text_of(payload));
    case Kind::kCutOff:
      return cut_off(list_of({from}) + " goes on without it");
    case Kind::kResult:
      if (is_leader) result_came(from, message);
      return;
    case Kind::kEntry:
      if (is_leader) entry_.emplace(payload.begin(), payload.end());
      return;
    case Kind::kPresent:
      if (is_leader && !entering_) presence_came(payload);
      return;
    case Kind::kIntroduction:  // it was asked for before this object was made
      return;
    default:
      throw PeerError(list_of({from}) + " sent a message of an unknown kind");
  }
}

void ElasticGroup::part_came(Rank from, const ElasticMessage& message) {
  const std::uint64_t operation = message.header.operation;
  if (operation <= answered_) return;
  if (operation > answered_ + 1) throw PeerError(list_of({from}) + " is in another operation");
  parts_[from].assign(message.payload.begin(), message.payload.end());
}

void ElasticGroup::result_came(Rank from, const ElasticMessage& message) {
  const std::uint64_t operation = message.header.operation;
  if (!entering_ && operation <= answered_) return;
  if (!entering_ && (operation != answered_ + 1 || !own_)) {
    throw PeerError(list_of({from}) + " answered something that " + list_of({rank_}) +
                    " did not ask");
  }
  take_answer(operation, message.payload);
}

// One answer more or less is all by which two ranks can differ.
void ElasticGroup::succession_came(Rank from, const ElasticMessage& message) {
  const Succession succession = read_succession(message.payload);
  const std::uint64_t theirs = message.header.operation;
  if (theirs > answered_ + 1 || theirs + 1 < answered_ || (theirs > answered_ && !own_)) {
    throw PeerError(list_of({from}) + " is in another operation");
  }
  stood_[from] = theirs;
  if (theirs == answered_ + 1) {
    const Rank leader = leader_;
    take_answer(theirs, succession.last);
    if (!end_ && leader_ == leader) turn_to_leader();  // which may lack it too
  } else if (theirs + 1 == answered_) {
    send(from, Kind::kResult, answered_, last_);
    stood_[from] = answered_;
    return;
  }
  if (end_ || !succession.part) return;
  parts_[from].assign(succession.part->begin(), succession.part->end());
}

// The leader says whom it has lost, and goes on without.
void ElasticGroup::presence_came(std::span<const std::byte> present) {
  if (present.size() != static_cast<std::size_t>(size_)) {
    throw PeerError(list_of({leader_}) + " counts " + std::to_string(present.size()) + " ranks");
  }
  for (Rank other = 0; other < size_; ++other) {
    const bool lost = present[static_cast<std::size_t>(other)] == std::byte{0};
    if (lost && other == rank_) return cut_off(list_of({leader_}) + " goes on without it");
    if (lost && has(other) && other != leader_) drop(other);
  }
}

void ElasticGroup::take_answer(std::uint64_t operation, std::span<const std::byte> bytes) {
  Bytes kept(bytes.begin(), bytes.end());
  ElasticAnswer answer = read_answer(kept, size_);
  if (!answer.present[rank_]) return cut_off(list_of({leader_}) + " goes on without it");
  const std::vector<bool> before = ranks_here();
  answered_ = operation;
  last_ = std::move(kept);
  answer_ = std::move(answer);
  ++answers_after_stop_;
  own_.reset();
  combine_ = nullptr;
  parts_.clear();
  // Other newcomers that have reached this one may have been let in before it.
  for (Rank other = 0; entering_ && other < size_; ++other) {
    if (other != rank_ && answer_.present[other]) gone_[other] = !ports_.readmit(other);
  }
  entering_ = false;
  for (const auto& [rank, text] : answer_.joined) {
    ended_.erase(rank);
    if (rank == rank_) continue;
    // A late answer may speak of one that is lost again, and back again.
    const bool is_another = introduced_.contains(rank);
    gone_[rank] = is_another || !ports_.readmit(rank);
    if (!is_another) forget(rank);
  }
  for (Rank other = 0; other < size_; ++other) {
    if (!answer_.present[other] && before[other]) drop(other);
  }
  if (!has(leader_)) follow_next();
  // Who turned to this rank, and lacks what it has now.
  for (auto& [rank, theirs] : stood_) {
    if (theirs + 1 == answered_)
      send(rank, Kind::kResult, std::exchange(theirs, answered_) + 1, last_);
  }
}

void ElasticGroup::forget(Rank rank) {
  parts_.erase(rank);
  stood_.erase(rank);
  introduced_.erase(rank);
  ready_.erase(rank);
}

void ElasticGroup::drop(Rank rank) {
  gone_[rank] = true;
  told_ = false;
  forget(rank);
  ports_.give_up(rank, elastic_message(Kind::kCutOff, 0, {}));
}

void ElasticGroup::on_lost(Rank rank, const std::string& why, Deadline now) {
  if (end_) return;
  look_at_clock(now);
  const bool counted = has(rank);
  gone_[rank] = true;
  forget(rank);
  if (counted) {
    lost_at_ = now_;
    told_ = false;
  }
  if (rank == leader_) {
    // Nobody else knows what a newcomer is to go on with.
    if (newcomer_ && !entry_) return cut_off(list_of({rank}) + " " + why);
    if (counted) follow_next();
  }
  lead();
}

void ElasticGroup::on_tick(Deadline now) {
  if (end_) return;
  look_at_clock(now);
  lead();
}

// The lowest that is left, as far as this rank can see.
void ElasticGroup::follow_next() {
  leader_ = 0;
  while (leader_ != rank_ && !has(leader_)) ++leader_;
  doubted_at_.reset();
  lost_at_ = now_;
  turn_to_leader();
}

void ElasticGroup::turn_to_leader() {
  if (leader_ == rank_) return;
  Succession succession{last_, {}};
  if (own_) succession.part = *own_;
  send(leader_, Kind::kSuccession, answered_, encode(succession));
}

}  // namespace cohort::membership
