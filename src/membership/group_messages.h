// What the ranks of an elastic group (group.h) tell each other, as bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.h"

namespace cohort::membership {

enum class ElasticKind : std::uint32_t {
  kPart,          // to the leader: a contribution to an operation
  kResult,        // from it: an answer
  kFarewell,      // to all: why the group ends
  kReturn,        // to the leader: a rank is back, and who it is
  kIntroduction,  // from it: an answer, whose result is what that one should know
  kReady,         // to it: it may be let in
  kEntry,         // from it: what it goes on with
  kSuccession,    // to who leads in another's place: the last answer, and a part where there is one
  kPresent,       // from the leader: a byte for each rank, 0 for those it has lost
  kCutOff         // to one that is given up
};

struct ElasticHeader {
  ElasticKind kind = ElasticKind::kPart;
  std::uint32_t zero = 0;
  std::uint64_t operation = 0;
};

Bytes elastic_message(ElasticKind kind, std::uint64_t operation,
                      std::span<const std::byte> payload);

struct ElasticMessage {
  ElasticHeader header;
  std::span<const std::byte> payload;  // of the message it was read from
};
// Throws PeerError.
ElasticMessage read_elastic(Rank from, std::span<const std::byte> message);

// Some ranks, and the one of them that leads.
struct ElasticSide {
  std::vector<bool> ranks = {};
  Rank leader = 0;
};

// Who is there and what they found, the same for all.
struct ElasticAnswer {
  Rank leader = 0;
  std::vector<bool> present = {};                         // by rank
  std::vector<std::pair<Rank, std::string>> joined = {};  // now, and what they say of themselves
  ElasticSide before = {};                                // of the answer before
  std::span<const std::byte> result = {};
};
Bytes encode(const ElasticAnswer& answer);
// `result` is of `bytes`. Throws PeerError.
ElasticAnswer read_answer(std::span<const std::byte> bytes, int size);

// One entry for each rank, nothing of those who have none.
Bytes encode_table(const std::map<Rank, Bytes>& parts, int size);
std::vector<Bytes> read_table(std::span<const std::byte> bytes, int size);

// What a rank that turns to another leader tells it.
struct Succession {
  std::span<const std::byte> last = {};                 // its last answer; nothing before the first
  std::optional<std::span<const std::byte>> part = {};  // to the operation after it
};
Bytes encode(const Succession& succession);
Succession read_succession(std::span<const std::byte> bytes);  // throws PeerError

std::string text_of(std::span<const std::byte> bytes);
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace cohort::membership
