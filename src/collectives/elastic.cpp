#include "collectives/elastic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/elastic_messages.h"
#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort::collectives {
ElasticCollectives::ElasticCollectives(transport::Transport& transport, ElasticOptions options,
                                       std::optional<Rank> entered)
    : Collectives(transport.rank(), transport.size()),
      transport_(transport),
      options_(std::move(options)),
      leader_(entered.value_or(0)),
      answered_by_(entered.value_or(0)),
      present_(static_cast<std::size_t>(size()), !entered) {}

int ElasticCollectives::present() const {
  return static_cast<int>(std::count(present_.begin(), present_.end(), true));
}

void ElasticCollectives::all_reduce(std::span<float> values, Deadline deadline) {
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    std::vector<float> sums(values.size());
    std::vector<float> part(values.size());
    for (const auto& [rank, bytes] : parts) {
      if (bytes.size() != values.size_bytes()) {
        throw PeerError(list_of({rank}) + " sent " + std::to_string(bytes.size()) +
                        " bytes in a sum of " + std::to_string(values.size_bytes()));
      }
      if (!bytes.empty()) std::memcpy(part.data(), bytes.data(), bytes.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
    }
    const auto total = std::as_bytes(std::span(sums));
    return Bytes(total.begin(), total.end());
  };
  const Bytes sum = operate(std::as_bytes(values), combine, /*lets_in=*/false, deadline);
  if (sum.size() != values.size_bytes()) {
    throw PeerError(list_of({leader()}) + " sent a sum of another length");
  }
  if (!sum.empty()) std::memcpy(values.data(), sum.data(), sum.size());
}

std::vector<Bytes> ElasticCollectives::all_gather(std::span<const std::byte> own,
                                                  Deadline deadline) {
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    return encode_table(parts, size());
  };
  return read_table(operate(own, combine, /*lets_in=*/false, deadline), size());
}

void ElasticCollectives::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    const auto part = parts.find(root);
    return part == parts.end() ? Bytes() : part->second;
  };
  const std::span<const std::byte> own = rank() == root ? bytes : std::span<std::byte>();
  const Bytes result = operate(own, combine, /*lets_in=*/false, deadline);
  if (result.size() != bytes.size()) {
    throw PeerError(list_of({root}) + " is not there, or has " + std::to_string(result.size()) +
                    " bytes to tell instead of " + std::to_string(bytes.size()));
  }
  if (!result.empty()) std::memcpy(bytes.data(), result.data(), result.size());
}

void ElasticCollectives::barrier(Deadline deadline) {
  operate(
      {}, [](const auto&) { return Bytes(); }, /*lets_in=*/false, deadline);
}

ElasticCollectives::Agreement ElasticCollectives::agree(bool mine, std::int64_t number,
                                                        Deadline deadline) {
  const std::int64_t own[2] = {mine ? 1 : 0, number};
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    std::int64_t all[2] = {0, number};
    for (const auto& [rank, bytes] : parts) {
      if (bytes.size() != sizeof own)
        throw PeerError(list_of({rank}) + " was asked something else");
      std::int64_t theirs[2];
      std::memcpy(theirs, bytes.data(), sizeof theirs);
      all[0] += theirs[0];
    }
    // Nobody is let in who would have to leave at once.
    if (all[0] > 0) ready_.clear();
    const auto result = std::as_bytes(std::span(all));
    return Bytes(result.begin(), result.end());
  };
  const Bytes result = operate(std::as_bytes(std::span(own)), combine, /*lets_in=*/true, deadline);
  std::int64_t all[2] = {0, 0};
  if (result.size() != sizeof all)
    throw PeerError(list_of({leader()}) + " was asked something else");
  std::memcpy(all, result.data(), sizeof all);
  return {all[0] > 0, all[1], joined_};
}

Bytes ElasticCollectives::operate(std::span<const std::byte> own, const Combine& combine,
                                  bool lets_in, Deadline deadline) {
  fail_if_broken();
  ++operation_;
  try {
    while (leader_ != rank()) {
      if (std::optional<Bytes> answer = follow(own, deadline)) {
        Bytes result = take_answer(std::move(*answer));
        hear_others();
        return result;
      }
      fail_if_broken();
      leader_ = successor();
    }
    return take_answer(lead(own, combine, lets_in, deadline));
  } catch (const CutOffError&) {
    throw;
  } catch (const PeerError& error) {
    if (leader_ == rank()) end_all(error.what());
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.what();
    throw PeerError(failure_);
  }
}

Bytes ElasticCollectives::take_answer(Bytes bytes) {
  const LivingAnswer answer = read_answer(bytes, size());
  answered_by_ = answer.leader;
  present_ = answer.present;
  joined_.clear();
  for (const auto& [who, text] : answer.joined) {
    const Rank rank = who;  // which a lambda can take along
    joined_.push_back(rank);
    std::erase_if(
        kept_, [rank](const transport::Message& each) { return each.from == rank; });  // another's
    transport_.readmit(rank);
    if (options_.joined) options_.joined(rank, text);
  }
  Bytes result(answer.result.begin(), answer.result.end());
  last_ = std::move(bytes);
  return result;
}

std::optional<Bytes> ElasticCollectives::follow(std::span<const std::byte> own, Deadline deadline) {
  const Rank leader = leader_;
  // Where that fails, it may have said why it left.
  if (leader == answered_by_) {
    send(leader, Kind::kPart, operation_, own, deadline);
  } else {
    send(leader, Kind::kSuccession, operation_, encode_pair(last_, own), deadline);
  }
  const std::optional<transport::Message> message = receive_from_leader(deadline);
  if (!message) return std::nullopt;
  const auto [header, payload] = read_living(leader, message->payload);
  if (header.kind != Kind::kResult || header.operation != operation_) {
    throw PeerError(list_of({leader}) + " answered something that " + list_of({rank()}) +
                    " did not ask");
  }
  return Bytes(payload.begin(), payload.end());
}

bool ElasticCollectives::send(Rank to, Kind kind, std::uint64_t operation,
                              std::span<const std::byte> payload, Deadline deadline) {
  const Bytes bytes = living_message(kind, operation, payload);
  try {
    transport_.send(to, kLivingTag, bytes, deadline);
  } catch (const PeerError&) {
    if (!transport_.gone(rank()).empty()) throw;  // this rank has left
    if (transport_.gone(to).empty()) throw;       // it is there, but slow
    return false;
  }
  sent_ += bytes.size();
  return true;
}

// Nothing when it is lost.
std::optional<transport::Message> ElasticCollectives::receive_from_leader(Deadline deadline) {
  const Rank leader = leader_;
  while (true) {
    transport::Message message;
    const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const transport::Message& each) {
      return each.from == leader;
    });
    if (kept != kept_.end()) {
      message = std::move(*kept);
      kept_.erase(kept);
    } else {
      try {
        message = transport_.receive(leader, kLivingTag, deadline);
      } catch (const PeerError&) {
        if (!transport_.gone(leader).empty() && transport_.gone(rank()).empty()) return {};
        throw;
      }
    }
    received_ += message.payload.size();
    const auto [header, payload] = read_living(leader, message.payload);
    if (header.kind == Kind::kFarewell) throw PeerError(text_of(payload));
    if (header.kind == Kind::kCutOff) cut_off(list_of({leader}) + " goes on without it");
    if (header.kind != Kind::kLeading) return message;
  }
}

// Who has lost the one that leads, though this rank has not, turns to this one or to itself. And
// who comes back may ask the wrong one.
void ElasticCollectives::hear_others() {
  while (auto message = transport_.try_receive(kLivingTag)) kept_.push_back(std::move(*message));
  std::vector<transport::Message> kept;
  for (transport::Message& message : std::exchange(kept_, {})) {
    const Rank from = message.from;
    const bool is_header = message.payload.size() >= sizeof(LivingHeader);
    if (!is_header && !present_[from]) continue;
    const auto [header, payload] = read_living(from, message.payload);
    const Deadline soon = deadline_in(kLivingSoon);
    const bool leads_or_asks = header.kind == Kind::kSuccession || header.kind == Kind::kLeading;
    if (from == leader_ || (leads_or_asks && present_[from])) {
      kept.push_back(std::move(message));
    } else if (leads_or_asks) {
      send(from, Kind::kCutOff, 0, {}, soon);
    } else if (header.kind == Kind::kFarewell && present_[from]) {
      throw PeerError(text_of(payload));
    } else if (header.kind == Kind::kReturn) {
      const std::string text =
          list_of({rank()}) + " does not lead, but " + list_of({leader_.load()});
      send(from, Kind::kFarewell, 0, bytes_of(text), soon);
    }
  }
  kept_ = std::move(kept);
}

// The lowest that is left, as far as this rank can see.
Rank ElasticCollectives::successor() const {
  for (Rank other = 0; other < size(); ++other) {
    if (other == rank()) break;
    if (present_[other] && transport_.gone(other).empty()) return other;
  }
  return rank();
}

void ElasticCollectives::cut_off(const std::string& why) const {
  throw CutOffError(list_of({rank()}) + " is cut off from the others: " + why);
}

Bytes ElasticCollectives::enter(Deadline deadline) {
  const auto lost = [this] { cut_off(list_of({leader_.load()}) + " " + transport_.gone(leader_)); };
  if (!send(leader_, Kind::kReady, 0, {}, deadline)) lost();
  while (true) {
    const std::optional<transport::Message> message = receive_from_leader(deadline);
    if (!message) lost();
    const auto [header, payload] = read_living(leader_, message->payload);
    if (header.kind == Kind::kEntry) return {payload.begin(), payload.end()};
    if (header.kind != Kind::kResult) {
      throw PeerError(list_of({leader_.load()}) + " sent something else than an entry");
    }
    operation_ = header.operation;
    take_answer({payload.begin(), payload.end()});
  }
}

void ElasticCollectives::leave(const std::string& reason) {
  const std::string text = farewell(list_of({rank()}), reason);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = text;
  }
  const Rank leader = leader_;
  bool told = false;
  try {
    told = leader != rank() &&
           send(leader, Kind::kFarewell, 0, bytes_of(text), deadline_in(kLivingSoon));
  } catch (const PeerError&) {  // who leads has left as well
  }
  if (!told) end_all(text);
  transport_.close();
}

void ElasticCollectives::fail_if_broken() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw PeerError("the group is broken since: " + failure_);
}

std::string introduce_to(transport::Transport& transport, Rank leader, const std::string& own,
                         std::vector<bool>& present, Deadline deadline) {
  ElasticCollectives group(transport, {}, leader);
  const auto lost = [&] { group.cut_off(list_of({leader}) + " " + transport.gone(leader)); };
  if (!group.send(leader, LivingKind::kReturn, 0, bytes_of(own), deadline)) lost();
  while (true) {
    const std::optional<transport::Message> message = group.receive_from_leader(deadline);
    if (!message) lost();
    const auto [header, payload] = read_living(leader, message->payload);
    // What its predecessor was to get may still come.
    if (header.kind != LivingKind::kIntroduction) continue;
    const LivingAnswer answer = read_answer(payload, transport.size());
    present = answer.present;
    return text_of(answer.result);
  }
}

}  // namespace cohort::collectives
