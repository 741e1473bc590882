#include "collectives/living.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort {

struct LivingCollectives::Header {
  Kind kind = Kind::kPart;
  std::uint32_t zero = 0;
  std::uint64_t operation = 0;
};

namespace {

constexpr Tag kLivingTag = 0x6c76;
constexpr std::chrono::milliseconds kLook{50};  // after which it is seen who is lost
constexpr std::chrono::seconds kFarewellTime{1};

// What is sent for each rank of who is there.
enum class Presence : std::uint8_t { kLost, kPresent, kJoined };

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Bytes table_of(const std::map<Rank, Bytes>& parts, int size) {
  Bytes table;
  for (Rank rank = 0; rank < size; ++rank) {
    const auto part = parts.find(rank);
    const std::uint64_t length = part == parts.end() ? 0 : part->second.size();
    append(table, std::as_bytes(std::span(&length, 1)));
    if (length > 0) append(table, part->second);
  }
  return table;
}

std::vector<Bytes> parts_of(std::span<const std::byte> table, int size) {
  std::vector<Bytes> parts(static_cast<std::size_t>(size));
  for (Bytes& part : parts) {
    std::uint64_t length = 0;
    const bool has_length = table.size() >= sizeof length;
    if (has_length) std::memcpy(&length, table.data(), sizeof length);
    if (!has_length || length > table.size() - sizeof length) {
      throw PeerError("rank 0 sent a table that ends early");
    }
    const auto bytes = table.subspan(sizeof length, length);
    part.assign(bytes.begin(), bytes.end());
    table = table.subspan(sizeof length + length);
  }
  return parts;
}

[[noreturn]] void cut_off(const Transport& transport) {
  throw CutOffError("rank " + std::to_string(transport.rank()) +
                    " has lost rank 0, which leads the others and keeps the run's folder: rank 0 " +
                    transport.gone(0));
}

}  // namespace

LivingCollectives::LivingCollectives(Transport& transport, LivingOptions options, bool returns)
    : transport_(transport),
      options_(std::move(options)),
      present_(static_cast<std::size_t>(transport.size()), !returns) {}

int LivingCollectives::present() const {
  return static_cast<int>(std::count(present_.begin(), present_.end(), true));
}

void LivingCollectives::all_reduce(std::span<float> values, Deadline deadline) {
  const Bytes sum = operate(
      std::as_bytes(values),
      [&](const std::map<Rank, Bytes>& parts) {
        Bytes total = parts.at(0);
        std::vector<float> sums(values.size());
        std::memcpy(sums.data(), total.data(), total.size());
        std::vector<float> part(values.size());
        for (const auto& [rank, bytes] : parts) {
          if (rank == 0) continue;
          if (bytes.size() != total.size()) {
            throw PeerError("rank " + std::to_string(rank) + " sent " +
                            std::to_string(bytes.size()) + " bytes in a sum of " +
                            std::to_string(total.size()));
          }
          std::memcpy(part.data(), bytes.data(), bytes.size());
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
        }
        std::memcpy(total.data(), sums.data(), total.size());
        return total;
      },
      /*lets_in=*/false, deadline);
  if (sum.size() != values.size_bytes()) throw PeerError("rank 0 sent a sum of another length");
  if (!sum.empty()) std::memcpy(values.data(), sum.data(), sum.size());
}

std::vector<Bytes> LivingCollectives::all_gather(std::span<const std::byte> own,
                                                 Deadline deadline) {
  const auto combine = [&](const std::map<Rank, Bytes>& parts) { return table_of(parts, size()); };
  return parts_of(operate(own, combine, /*lets_in=*/false, deadline), size());
}

void LivingCollectives::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    const auto part = parts.find(root);
    return part == parts.end() ? Bytes() : part->second;
  };
  const std::span<const std::byte> own = rank() == root ? bytes : std::span<std::byte>();
  const Bytes result = operate(own, combine, /*lets_in=*/false, deadline);
  if (result.size() != bytes.size()) {
    throw PeerError("rank " + std::to_string(root) + " is not there, or has " +
                    std::to_string(result.size()) + " bytes to tell instead of " +
                    std::to_string(bytes.size()));
  }
  if (!result.empty()) std::memcpy(bytes.data(), result.data(), result.size());
}

void LivingCollectives::barrier(Deadline deadline) {
  operate(
      {}, [](const auto&) { return Bytes(); }, /*lets_in=*/false, deadline);
}

LivingCollectives::Agreement LivingCollectives::agree(bool mine, std::int64_t number,
                                                      Deadline deadline) {
  const std::int64_t own[2] = {mine ? 1 : 0, number};
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    std::int64_t all[2] = {0, number};
    for (const auto& [rank, bytes] : parts) {
      if (bytes.size() != sizeof own) {
        throw PeerError("rank " + std::to_string(rank) + " was asked something else");
      }
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
  if (result.size() != sizeof all) throw PeerError("rank 0 was asked something else");
  std::memcpy(all, result.data(), sizeof all);
  return {all[0] > 0, all[1], joined_};
}

Bytes LivingCollectives::operate(std::span<const std::byte> own, const Combine& combine,
                                 bool lets_in, Deadline deadline) {
  fail_if_broken();
  ++operation_;
  try {
    return rank() == 0 ? lead(own, combine, lets_in, deadline) : follow(own, deadline);
  } catch (const CutOffError&) {
    throw;
  } catch (const PeerError& error) {
    if (rank() == 0) end_all(error.what());
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.what();
    throw PeerError(failure_);
  }
}

Bytes LivingCollectives::lead(std::span<const std::byte> own, const Combine& combine, bool lets_in,
                              Deadline deadline) {
  parts_.clear();
  parts_[0].assign(own.begin(), own.end());
  for (auto& [from, message] : std::exchange(early_, {})) handle(std::move(message));
  while (!awaited().empty()) {
    if (auto message = transport_.receive_any(kLivingTag, std::min(deadline, deadline_in(kLook)))) {
      take(std::move(*message));
    } else if (Clock::now() < deadline) {
      look_for_lost();
    } else {
      throw PeerError("nothing came from " + list_of(awaited()) + " in time (--peer-timeout)");
    }
  }
  // Those who come back while nobody is waited for.
  while (auto message = transport_.try_receive(kLivingTag)) take(std::move(*message));
  const Bytes result = combine(parts_);
  joined_.clear();
  for (const Rank rank : lets_in ? std::exchange(ready_, {}) : std::vector<Rank>{}) {
    if (present_[rank]) continue;
    transport_.readmit(rank);
    if (transport_.gone(rank).empty()) joined_.push_back(rank);
    std::erase(introduced_, rank);
  }
  Bytes answer = presence();
  for (const Rank rank : joined_) answer[rank] = static_cast<std::byte>(Presence::kJoined);
  append(answer, result);
  for (const Rank rank : joined_) present_[rank] = true;
  for (Rank to = 1; to < size(); ++to) {
    if (present_[to]) send(to, Kind::kResult, operation_, answer, deadline);
  }
  return result;
}

Bytes LivingCollectives::follow(std::span<const std::byte> own, Deadline deadline) {
  // Where that fails, rank 0 may have said why it left.
  send(0, Kind::kPart, operation_, own, deadline);
  const Message message = receive_from_first(deadline);
  Header header;
  std::memcpy(&header, message.payload.data(), sizeof header);
  const auto payload = std::span(message.payload).subspan(sizeof header);
  if (header.kind != Kind::kResult || header.operation != operation_) {
    throw PeerError("rank 0 answered something that rank " + std::to_string(rank()) +
                    " did not ask");
  }
  take_presence(payload);
  const auto result = payload.subspan(present_.size());
  return {result.begin(), result.end()};
}

// Of rank 0 alone. What one that is not let in says may be wrong, and is its own affair.
void LivingCollectives::take(Message message) {
  received_ += message.payload.size();
  const Rank from = message.from;
  Header header;
  if (message.payload.size() >= sizeof header) {
    std::memcpy(&header, message.payload.data(), sizeof header);
    if (header.kind == Kind::kReturn) lose(from);  // this is another in its place
  }
  if (present_[from]) return handle(std::move(message));
  try {
    handle(std::move(message));
  } catch (const Error& error) {
    lose(from);
    send(from, Kind::kFarewell, 0, bytes_of(error.what()), deadline_in(kFarewellTime));
  }
}

void LivingCollectives::handle(Message message) {
  Header header;
  const Rank from = message.from;
  if (message.payload.size() < sizeof header) {
    throw PeerError("rank " + std::to_string(from) + " sent a message that is none");
  }
  std::memcpy(&header, message.payload.data(), sizeof header);
  const auto payload = std::span<const std::byte>(message.payload).subspan(sizeof header);
  switch (header.kind) {
    case Kind::kPart:
      if (!present_[from]) return;  // it has been given up, and will learn so
      if (header.operation == operation_ + 1) {
        early_[from] = std::move(message);
      } else if (header.operation == operation_) {
        parts_[from].assign(payload.begin(), payload.end());
      } else {
        throw PeerError("rank " + std::to_string(from) + " is in another operation");
      }
      return;
    case Kind::kFarewell:
      if (present_[from]) throw PeerError(text_of(payload));
      return;
    case Kind::kReturn: {
      Bytes answer = presence();
      for (const Rank other : introduced_) {
        answer[other] = static_cast<std::byte>(Presence::kPresent);
      }
      introduced_.push_back(from);
      append(answer,
             bytes_of(options_.introduce ? options_.introduce(from, text_of(payload)) : ""));
      send(from, Kind::kIntroduction, 0, answer, deadline_in(kFarewellTime));
      return;
    }
    case Kind::kReady:
      if (!present_[from]) ready_.push_back(from);
      return;
    default:
      throw PeerError("rank " + std::to_string(from) + " sent what only rank 0 may");
  }
}

std::vector<Rank> LivingCollectives::awaited() const {
  std::vector<Rank> ranks;
  for (Rank rank = 1; rank < size(); ++rank) {
    if (present_[rank] && !parts_.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

void LivingCollectives::look_for_lost() {
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
    if (!parts_.contains(rank)) lose(rank);
  }
}

void LivingCollectives::lose(Rank rank) {
  present_[rank] = false;
  parts_.erase(rank);
  early_.erase(rank);
  std::erase(ready_, rank);
  std::erase(introduced_, rank);
}

bool LivingCollectives::send(Rank to, Kind kind, std::uint64_t operation,
                             std::span<const std::byte> payload, Deadline deadline) {
  const Header header{kind, 0, operation};
  Bytes bytes;
  bytes.reserve(sizeof header + payload.size());
  append(bytes, std::as_bytes(std::span(&header, 1)));
  append(bytes, payload);
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

Message LivingCollectives::receive_from_first(Deadline deadline) {
  Message message;
  try {
    message = transport_.receive(0, kLivingTag, deadline);
  } catch (const PeerError&) {
    if (!transport_.gone(0).empty() && transport_.gone(rank()).empty()) {
      fail_if_broken();
      cut_off(transport_);
    }
    throw;
  }
  received_ += message.payload.size();
  Header header;
  if (message.payload.size() < sizeof header) throw PeerError("rank 0 sent no message");
  std::memcpy(&header, message.payload.data(), sizeof header);
  if (header.kind == Kind::kFarewell) {
    throw PeerError(text_of(std::span(message.payload).subspan(sizeof header)));
  }
  return message;
}

Bytes LivingCollectives::presence() const {
  Bytes flags(present_.size());
  for (std::size_t rank = 0; rank < present_.size(); ++rank) {
    flags[rank] = static_cast<std::byte>(present_[rank] ? Presence::kPresent : Presence::kLost);
  }
  return flags;
}

void LivingCollectives::take_presence(std::span<const std::byte> flags) {
  if (flags.size() < present_.size()) throw PeerError("rank 0 sent an answer that ends early");
  joined_.clear();
  for (std::size_t rank = 0; rank < present_.size(); ++rank) {
    const auto flag = static_cast<Presence>(flags[rank]);
    present_[rank] = flag != Presence::kLost;
    if (flag != Presence::kJoined) continue;
    joined_.push_back(static_cast<Rank>(rank));
    transport_.readmit(static_cast<Rank>(rank));
  }
}

void LivingCollectives::welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline) {
  send(rank, Kind::kEntry, operation_, entry, deadline);
}

Bytes LivingCollectives::enter(Deadline deadline) {
  if (!send(0, Kind::kReady, 0, {}, deadline)) cut_off(transport_);
  while (true) {
    const Message message = receive_from_first(deadline);
    Header header;
    std::memcpy(&header, message.payload.data(), sizeof header);
    const auto payload = std::span(message.payload).subspan(sizeof header);
    if (header.kind == Kind::kEntry) return {payload.begin(), payload.end()};
    if (header.kind != Kind::kResult) throw PeerError("rank 0 sent something else than an entry");
    operation_ = header.operation;
    take_presence(payload);
  }
}

void LivingCollectives::end_all(const std::string& reason) {
  for (Rank to = 1; to < size(); ++to) {
    try {
      send(to, Kind::kFarewell, 0, bytes_of(reason), deadline_in(kFarewellTime));
    } catch (const PeerError&) {  // it has left as well
    }
  }
}

void LivingCollectives::leave(const std::string& reason) {
  const std::string text = farewell("rank " + std::to_string(rank()), reason);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = text;
  }
  try {
    if (rank() == 0) {
      end_all(text);
    } else {
      send(0, Kind::kFarewell, 0, bytes_of(text), deadline_in(kFarewellTime));
    }
  } catch (const PeerError&) {  // rank 0 has left as well
  }
  transport_.close();
}

void LivingCollectives::fail_if_broken() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw PeerError("the group is broken since: " + failure_);
}

std::string introduce_to_first(Transport& transport, const std::string& own,
                               std::vector<bool>& present, Deadline deadline) {
  LivingCollectives group(transport, {}, /*returns=*/true);
  if (!group.send(0, LivingCollectives::Kind::kReturn, 0, bytes_of(own), deadline)) {
    cut_off(transport);
  }
  Message message;
  LivingCollectives::Header header;
  do {  // what its predecessor was to get may still come
    message = group.receive_from_first(deadline);
    std::memcpy(&header, message.payload.data(), sizeof header);
  } while (header.kind != LivingCollectives::Kind::kIntroduction);
  const auto payload = std::span(message.payload).subspan(sizeof header);
  group.take_presence(payload);
  present = group.present_;
  return text_of(payload.subspan(present.size()));
}

}  // namespace cohort
