// What those who go on without the lost tell each other (elastic.h), as bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.h"
#include "transport/transport.h"

namespace cohort::collectives {

inline constexpr transport::Tag kLivingTag = 0x6c76;
inline constexpr std::chrono::seconds kLivingSoon{1};  // for what is said beside the operations

enum class LivingKind : std::uint32_t {
  kPart,          // to who leads: a contribution to an operation
  kResult,        // from it: an answer
  kFarewell,      // to or from it: why the group ends
  kReturn,        // to it: a rank is back, and who it is
  kIntroduction,  // from it: an answer, whose result is what that one should know
  kReady,         // to it: it may be let in
  kEntry,         // from it: what it goes on with
  kSuccession,    // to who leads in another's place: the last answer, then a contribution
  kLeading,       // from who leads in another's place, at once: whoever follows another says so
  kCutOff         // to one that others have given up
};

struct LivingHeader {
  LivingKind kind = LivingKind::kPart;
  std::uint32_t zero = 0;
  std::uint64_t operation = 0;
};

Bytes living_message(LivingKind kind, std::uint64_t operation, std::span<const std::byte> payload);

struct LivingMessage {
  LivingHeader header;
  std::span<const std::byte> payload;  // of the message it was read from
};
// Throws PeerError.
LivingMessage read_living(Rank from, std::span<const std::byte> message);

// Some ranks, and the one of them that leads.
struct LivingSide {
  std::vector<bool> ranks = {};
  Rank leader = 0;
};

// Who is there and what they found, the same for all.
struct LivingAnswer {
  Rank leader = 0;
  std::vector<bool> present = {};                         // by rank
  std::vector<std::pair<Rank, std::string>> joined = {};  // now, and what they say of themselves
  LivingSide before = {};                                 // of the answer before
  std::span<const std::byte> result = {};
};
Bytes encode(const LivingAnswer& answer);
// `result` is of `bytes`. Throws PeerError.
LivingAnswer read_answer(std::span<const std::byte> bytes, int size);

// One entry for each rank, nothing of those who have none.
Bytes encode_table(const std::map<Rank, Bytes>& parts, int size);
std::vector<Bytes> read_table(std::span<const std::byte> bytes, int size);

// Two pieces in one. Throws PeerError.
Bytes encode_pair(std::span<const std::byte> first, std::span<const std::byte> second);
std::pair<std::span<const std::byte>, std::span<const std::byte>> read_pair(
    std::span<const std::byte> bytes);

std::string text_of(std::span<const std::byte> bytes);
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace cohort::collectives
