// What the rank that leads does.
#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/elastic.h"
#include "collectives/elastic_messages.h"
#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::chrono::milliseconds kLook{50};       // after which it is seen who is lost
constexpr std::chrono::seconds kTimeToEnd{2};        // of a process whose links have ended,
constexpr std::chrono::milliseconds kAskAgain{400};  // for which its host is asked so often

}  // namespace

Bytes ElasticCollectives::lead(std::span<const std::byte> own, const Combine& combine, bool lets_in,
                               Deadline deadline) {
  parts_.clear();
  parts_[rank()].assign(own.begin(), own.end());
  ahead_.reset();
  if (answered_by_ != rank()) announce(deadline);
  for (auto& [from, message] : std::exchange(early_, {})) handle(std::move(message));
  for (transport::Message& message : std::exchange(kept_, {})) take(std::move(message));
  hear_all(deadline);
  Bytes bytes;
  if (ahead_) {
    bytes = std::move(*ahead_);
  } else {
    const std::vector<Rank> ended = require_majority();
    if (lets_in && options_.leads) options_.leads();
    const Bytes result = combine(parts_);
    LivingAnswer answer{rank(), present_, {}, {}, result};
    if (lets_in) answer.joined = let_in();
    answer.before = {std::vector<bool>(present_.size(), true), answered_by_};
    if (!last_.empty()) answer.before.ranks = read_answer(last_, size()).present;
    for (const Rank rank : ended) answer.before.ranks[rank] = false;
    bytes = encode(answer);
    for (const auto& [joined, text] : answer.joined) parts_[joined];  // learns it as well
  }
  for (const auto& [to, part] : parts_) {
    if (to != rank()) send(to, Kind::kResult, operation_, bytes, deadline);
  }
  return bytes;
}

// So that one that follows another can say so.
void ElasticCollectives::announce(Deadline deadline) {
  for (Rank to = 0; to < size(); ++to) {
    if (to != rank() && present_[to]) send(to, Kind::kLeading, operation_, {}, deadline);
  }
}

void ElasticCollectives::hear_all(Deadline deadline) {
  while (!awaited().empty()) {
    if (auto message = transport_.receive_any(kLivingTag, std::min(deadline, deadline_in(kLook)))) {
      take(std::move(*message));
    } else if (Clock::now() < deadline) {
      look_for_lost();
    } else if (answered_by_ != rank()) {
      cut_off("nothing came from " + list_of(awaited()) + ", which may follow another");
    } else {
      throw PeerError("nothing came from " + list_of(awaited()) + " in time (--peer-timeout)");
    }
  }
  // Those who come back while nobody is waited for.
  while (auto message = transport_.try_receive(kLivingTag)) take(std::move(*message));
}

bool ElasticCollectives::has_majority_of(const std::vector<bool>& ranks, Rank leader,
                                         const std::vector<Rank>& ended) const {
  int all = 0;
  int ours = 0;
  for (Rank other = 0; other < size(); ++other) {
    if (!ranks[other] || std::find(ended.begin(), ended.end(), other) != ended.end()) continue;
    ++all;
    ours += present_[other] ? 1 : 0;
  }
  return 2 * ours + (present_[leader] ? 1 : 0) > all;
}

// Two sides that have lost each other must not both go on. That of the last answer is not enough:
// it may count ranks that never got it, and have gone on without this one.
std::vector<Rank> ElasticCollectives::require_majority() {
  LivingAnswer last{0, std::vector<bool>(present_.size(), true), {}, {}, {}};
  last.before.ranks = last.present;
  if (!last_.empty()) last = read_answer(last_, size());
  std::vector<Rank> unsure;
  for (Rank other = 0; other < size(); ++other) {
    const bool was = last.present[other] || last.before.ranks[other];
    if (was && !present_[other]) unsure.push_back(other);
  }
  std::vector<Rank> ended;
  const Deadline deadline = deadline_in(kTimeToEnd);
  while (!has_majority_of(last.present, last.leader, ended) ||
         !has_majority_of(last.before.ranks, last.before.leader, ended)) {
    for (const Rank other : std::exchange(unsure, {})) {
      const bool has_ended = options_.has_ended && options_.has_ended(other);
      (has_ended ? ended : unsure).push_back(other);
    }
    if (unsure.empty()) break;
    if (options_.has_ended && Clock::now() < deadline) {
      std::this_thread::sleep_for(kAskAgain);
      continue;
    }
    cut_off("it has lost " + list_of(unsure) + ", which may go on without it: " +
            std::to_string(present()) + " of " + std::to_string(size()) + " are left here");
  }
  return ended;
}

std::vector<std::pair<Rank, std::string>> ElasticCollectives::let_in() {
  std::vector<std::pair<Rank, std::string>> joined;
  for (const Rank rank : std::exchange(ready_, {})) {
    if (present_[rank]) continue;
    transport_.readmit(rank);
    if (transport_.gone(rank).empty()) joined.emplace_back(rank, said_[rank]);
    std::erase(introduced_, rank);
  }
  return joined;
}

// What one that is not let in says may be wrong, and is its own affair.
void ElasticCollectives::take(transport::Message message) {
  received_ += message.payload.size();
  const Rank from = message.from;
  LivingHeader header;
  if (message.payload.size() >= sizeof header) {
    std::memcpy(&header, message.payload.data(), sizeof header);
    if (header.kind == Kind::kReturn) lose(from);  // this is another in its place
  }
  if (present_[from]) return handle(std::move(message));
  try {
    handle(std::move(message));
  } catch (const Error& error) {
    lose(from);
    send(from, Kind::kFarewell, 0, bytes_of(error.what()), deadline_in(kLivingSoon));
  }
}

void ElasticCollectives::handle(transport::Message message) {
  const Rank from = message.from;
  const LivingMessage read = read_living(from, message.payload);
  switch (read.header.kind) {
    case Kind::kPart:
      if (!present_[from]) return;  // it has been given up, and will learn so
      if (read.header.operation == operation_ + 1) {
        early_[from] = std::move(message);
      } else if (read.header.operation == operation_) {
        parts_[from].assign(read.payload.begin(), read.payload.end());
      } else {
        throw PeerError(list_of({from}) + " is in another operation");
      }
      return;
    case Kind::kSuccession:
      return handle_succession(from, read);
    case Kind::kLeading:  // one of the two will learn that it does not
      if (!present_[from]) send(from, Kind::kCutOff, 0, {}, deadline_in(kLivingSoon));
      return;
    case Kind::kCutOff:
      if (present_[from]) cut_off(list_of({from}) + " follows another");
      return;
    case Kind::kFarewell:
      if (present_[from]) throw PeerError(text_of(read.payload));
      return;
    case Kind::kReturn: {
      LivingAnswer answer{rank(), present_, {}, {}, {}};
      for (const Rank other : introduced_) answer.present[other] = true;
      const std::string said = text_of(read.payload);
      const std::string told = options_.introduce ? options_.introduce(from, said) : "";
      said_[from] = said;
      introduced_.push_back(from);
      answer.result = bytes_of(told);
      send(from, Kind::kIntroduction, 0, encode(answer), deadline_in(kLivingSoon));
      return;
    }
    case Kind::kReady:
      if (std::find(introduced_.begin(), introduced_.end(), from) != introduced_.end()) {
        ready_.push_back(from);
      }
      return;
    default:
      throw PeerError(list_of({from}) + " sent what only who leads may");
  }
}

// One answer more or less is all by which two ranks can differ: nobody gets the next one before all
// have asked for it.
void ElasticCollectives::handle_succession(Rank from, const LivingMessage& message) {
  if (!present_[from]) {
    send(from, Kind::kCutOff, 0, {}, deadline_in(kLivingSoon));
    return;
  }
  const auto [answer, part] = read_pair(message.payload);
  const std::uint64_t theirs = message.header.operation;
  if (theirs == operation_) {
    parts_[from].assign(part.begin(), part.end());
  } else if (theirs == operation_ + 1) {
    ahead_.emplace(answer.begin(), answer.end());
    early_[from] = {from, kLivingTag, living_message(Kind::kPart, theirs, part)};
  } else if (theirs + 1 == operation_) {
    send(from, Kind::kResult, theirs, last_, deadline_in(kLivingSoon));
  } else {
    throw PeerError(list_of({from}) + " is in another operation");
  }
}

std::vector<Rank> ElasticCollectives::awaited() const {
  std::vector<Rank> ranks;
  for (Rank other = 0; other < size(); ++other) {
    const bool heard = other == rank() || parts_.contains(other) || early_.contains(other);
    if (present_[other] && !heard) ranks.push_back(other);
  }
  return ranks;
}

void ElasticCollectives::look_for_lost() {
  std::vector<Rank> lost;
  for (const Rank rank : awaited()) {
    if (!transport_.gone(rank).empty()) lost.push_back(rank);
  }
  // What they sent before they went.
  while (!lost.empty()) {
    auto message = transport_.try_receive(kLivingTag);
    if (!message) break;
    take(std::move(*message));
  }
  for (const Rank rank : lost) {
    if (!parts_.contains(rank) && !early_.contains(rank)) lose(rank);
  }
}

void ElasticCollectives::lose(Rank rank) {
  present_[rank] = false;
  parts_.erase(rank);
  early_.erase(rank);
  std::erase(ready_, rank);
  std::erase(introduced_, rank);
}

void ElasticCollectives::welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline) {
  send(rank, Kind::kEntry, operation_, entry, deadline);
}

void ElasticCollectives::end_all(const std::string& reason) {
  for (Rank to = 0; to < size(); ++to) {
    if (to == rank()) continue;
    try {
      send(to, Kind::kFarewell, 0, bytes_of(reason), deadline_in(kLivingSoon));
    } catch (const PeerError&) {  // it has left as well
    }
  }
}

}  // namespace cohort::collectives
