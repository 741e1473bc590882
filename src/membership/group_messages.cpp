#include "membership/group_messages.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace cohort::membership {
namespace {

// What is sent for each rank of who is there; with kWasThere added for those of the answer before.
enum class RankState : std::uint8_t { kLost, kPresent, kJoined };
constexpr std::byte kWasThere{4};

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class Number>
void append_number(Bytes& to, Number number) {
  append(to, std::as_bytes(std::span(&number, 1)));
}

void append_piece(Bytes& to, std::span<const std::byte> piece) {
  append_number<std::uint64_t>(to, piece.size());
  append(to, piece);
}

// Takes bytes from the front of a message.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> take(std::uint64_t length) {
    if (length > rest_.size()) throw PeerError("a rank sent a message that ends early");
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> piece() { return take(number<std::uint64_t>()); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes elastic_message(ElasticKind kind, std::uint64_t operation,
                      std::span<const std::byte> payload) {
  const ElasticHeader header{kind, 0, operation};
  Bytes bytes;
  bytes.reserve(sizeof header + payload.size());
  append_number(bytes, header);
  append(bytes, payload);
  return bytes;
}

ElasticMessage read_elastic(Rank from, std::span<const std::byte> message) {
  ElasticHeader header;
  if (message.size() < sizeof header) {
    throw PeerError("rank " + std::to_string(from) + " sent a message that is none");
  }
  std::memcpy(&header, message.data(), sizeof header);
  return {header, message.subspan(sizeof header)};
}

Bytes encode(const ElasticAnswer& answer) {
  Bytes bytes;
  append_number<std::int32_t>(bytes, answer.leader);
  append_number<std::int32_t>(bytes, answer.before.leader);
  const std::size_t flags = bytes.size();
  for (const bool is : answer.present) {
    bytes.push_back(static_cast<std::byte>(is ? RankState::kPresent : RankState::kLost));
  }
  for (const auto& [rank, text] : answer.joined) {
    bytes[flags + static_cast<std::size_t>(rank)] = static_cast<std::byte>(RankState::kJoined);
  }
  for (std::size_t rank = 0; rank < answer.before.ranks.size(); ++rank) {
    if (answer.before.ranks[rank]) bytes[flags + rank] |= kWasThere;
  }
  // In the order of the ranks, as they are read.
  for (std::size_t rank = 0; rank < answer.present.size(); ++rank) {
    for (const auto& [joined, text] : answer.joined) {
      if (static_cast<std::size_t>(joined) == rank) {
        append_piece(bytes, std::as_bytes(std::span(text)));
      }
    }
  }
  append(bytes, answer.result);
  return bytes;
}

ElasticAnswer read_answer(std::span<const std::byte> bytes, int size) {
  Reader reader(bytes);
  ElasticAnswer answer;
  answer.leader = reader.number<std::int32_t>();
  answer.before.leader = reader.number<std::int32_t>();
  for (const Rank leader : {answer.leader, answer.before.leader}) {
    if (leader >= 0 && leader < size) continue;
    throw PeerError("a rank sent an answer of rank " + std::to_string(leader) +
                    ", which is none of " + std::to_string(size));
  }
  for (const std::byte flag : reader.take(static_cast<std::uint64_t>(size))) {
    answer.before.ranks.push_back((flag & kWasThere) != std::byte{0});
    const auto presence = static_cast<RankState>(flag & ~kWasThere);
    if (presence == RankState::kJoined) {
      answer.joined.emplace_back(static_cast<Rank>(answer.present.size()), "");
    }
    answer.present.push_back(presence != RankState::kLost);
  }
  for (auto& [rank, text] : answer.joined) text = text_of(reader.piece());
  answer.result = reader.rest();
  return answer;
}

Bytes encode_table(const std::map<Rank, Bytes>& parts, int size) {
  Bytes table;
  for (Rank rank = 0; rank < size; ++rank) {
    const auto part = parts.find(rank);
    append_piece(table, part == parts.end() ? std::span<const std::byte>() : part->second);
  }
  return table;
}

std::vector<Bytes> read_table(std::span<const std::byte> bytes, int size) {
  Reader reader(bytes);
  std::vector<Bytes> parts;
  for (int rank = 0; rank < size; ++rank) {
    const auto piece = reader.piece();
    parts.emplace_back(piece.begin(), piece.end());
  }
  return parts;
}

Bytes encode(const Succession& succession) {
  Bytes bytes;
  append_piece(bytes, succession.last);
  append_number<std::uint8_t>(bytes, succession.part ? 1 : 0);
  if (succession.part) append(bytes, *succession.part);
  return bytes;
}

Succession read_succession(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Succession succession{reader.piece(), {}};
  if (reader.number<std::uint8_t>() != 0) succession.part = reader.rest();
  return succession;
}

}  // namespace cohort::membership
