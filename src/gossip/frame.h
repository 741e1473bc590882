// What gossip puts on the wire: a header of 24 bytes, then the message.
//
//   u32 kind and magic   u32 zero   u64 round   u64 check   payload
//
// `check` of a message covers its payload and, where ranks remember their neighbours, every message
// of its sender before it: equal checks mean equal estimates.
#pragma once

#include <cstdint>
#include <span>

#include "core/types.h"

namespace cohort::gossip {

enum class GossipKind : std::uint32_t {
  kMessage,    // the sender's contribution to a round
  kAgain,      // please send your message of that round once more
  kGone,       // cannot: it is too long ago
  kWantState,  // please send what you are believed to be
  kState,      // the sender's estimate after that round, float32; `check` as of then
};

struct GossipHeader {
  GossipKind kind = GossipKind::kMessage;
  std::uint64_t round = 0;
  std::uint64_t check = 0;
};

inline constexpr std::size_t kGossipHeaderBytes = 24;

// `before`: the check of what came before, or 0.
std::uint64_t gossip_check(std::uint64_t before, std::span<const std::byte> payload);

Bytes gossip_frame(const GossipHeader& header, std::span<const std::byte> payload);

// Throws PeerError. The payload is what follows.
GossipHeader parse_gossip_header(std::span<const std::byte> frame);

}  // namespace cohort::gossip
